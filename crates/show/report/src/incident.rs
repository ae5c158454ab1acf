use incidents::Incident;

/// An incident with its number in the history.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberedIncident {
    /// Its number.
    pub id: i64,
    /// The incident.
    pub incident: Incident,
}
