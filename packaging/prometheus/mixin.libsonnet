// Written by headroom fleet; changes are lost when it is written again.
// A monitoring mixin of the files beside it: headroom fleet rules, alerts and dashboards write them.
local alerts = std.parseYaml(importstr 'headroom-alerts.yml');
{
  // The page of the runbooks, a heading for each alert.
  _config+:: { headroomRunbooks: 'docs/reference/fleet.md' },
  prometheusRules+:: { groups+: std.parseYaml(importstr 'headroom-rules.yml').groups },
  prometheusAlerts+:: {
    groups+: [
      group {
        rules: [
          rule {
            annotations+: {
              runbook_url: $._config.headroomRunbooks + '#' + std.split(rule.annotations.runbook_url, '#')[1],
            },
          }
          for rule in group.rules
        ],
      }
      for group in alerts.groups
    ],
  },
  grafanaDashboards+:: {
    'headroom-fleet.json': import 'headroom-fleet.json',
    'headroom-host.json': import 'headroom-host.json',
    'headroom-volume.json': import 'headroom-volume.json',
    'headroom-database.json': import 'headroom-database.json',
    'headroom-incident.json': import 'headroom-incident.json',
  },
}
