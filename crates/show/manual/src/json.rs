//! The reference of each command's output with `--json`, and JSON Schema files of it, from the types that are
//! serialised.
//!
//! ```text
//! headroom::json_schemas   a schema for each command, and the definitions that they refer to
//!   Outputs::references    how often each definition is referred to
//!   page                   one that is referred to once is written in place, as `files[].path`; others have a section
//! ```

mod cell;
mod outputs;
mod section;

pub use outputs::{Outputs, write_schemas};

use section::Sections;

const OPENING: &str = "\
# JSON

Every command takes `--json` and prints one value. Keys are stable: new ones may be added, none changes its meaning.
Progress, warnings and errors go to stderr as text.

```sh run
headroom history path --json | jq -e '.path'
```

* Sizes are bytes, times nanoseconds (`_ns`) or seconds (`_s`), rates a second, shares 0 to 1.
* Instants are nanoseconds since 1970 in UTC, or RFC 3339 text (`_time`, `_at`).
* Characters that a terminal would execute or that reverse the order of text are escaped (`\\u202e`): the text is the same.
* **An unknown figure is never 0.** It is `{\"unknown\": \"<reason>\"}` with a [reason](#reason), or null.
* `files[].path` is the key `path` of each object in the list `files`. Keys are sorted, here and in the output.

Written from the types of the program: `cargo run -p manual --bin headroom-manual -- --json > docs/reference/json.md`; a
test compares it. `headroom-manual --json-schema DIR` writes a JSON Schema for each command; packages have them in
`share/doc/headroom/json-schema`.
";

/// The reference of all outputs, as a page of the documentation.
#[must_use]
pub fn page() -> String {
    let outputs = Outputs::new();
    let mut sections = Sections::new(&outputs);
    for (command, schema) in &outputs.roots {
        sections.root(command, schema);
    }
    format!("{OPENING}{}", sections.finish())
}
