/// Notes that a person must know to read a snapshot.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// All notes, in the order in which they were added.
    pub texts: Vec<String>,
    /// Those that only explain the figures.
    pub remarks: Vec<String>,
}

impl Notes {
    /// Adds a note on something that can be switched on, granted or repaired.
    pub fn add_lack(&mut self, text: impl Into<String>) {
        self.texts.push(text.into());
    }

    /// Adds a note that only explains the figures.
    pub fn add_remark(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.texts.push(text.clone());
        self.remarks.push(text);
    }
}
