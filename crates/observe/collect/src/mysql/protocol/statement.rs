//! Prepared statements, for experiments that run one many times.

use super::{Fault, Reader, Wire};

const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const CLOSE: u8 = 0x19;
/// Behind the number of the statement: no cursor, and one execution.
const ONCE: [u8; 5] = [0, 1, 0, 0, 0];
const TYPES_FOLLOW: u8 = 1;
/// MYSQL_TYPE_LONGLONG, unsigned, and MYSQL_TYPE_BLOB.
const UNSIGNED: [u8; 2] = [8, 0x80];
const BYTES: [u8; 2] = [0xFC, 0];

/// A statement that the server has prepared.
#[derive(Debug)]
pub struct Statement {
    id: u32,
    /// Columns of its rows; 0 if it returns none.
    pub columns: usize,
    /// Parameters.
    pub parameters: usize,
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Parameter<'a> {
    /// A number.
    Number(u64),
    /// A binary text.
    Bytes(&'a [u8]),
}

impl Wire {
    /// Prepares a statement; it is not run.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn prepare(&mut self, sql: &str) -> Result<Statement, Fault> {
        self.command(PREPARE, sql.as_bytes())?;
        let head = self.receive()?;
        let mut reader = Reader(&head);
        if reader.int(1)? != 0 {
            return Err(Fault::Protocol("it prepares a statement in a form that is not understood"));
        }
        let id = reader.int(4)? as u32;
        let (columns, parameters) = (reader.int(2)? as usize, reader.int(2)? as usize);
        for count in [parameters, columns] {
            if count > 0 {
                self.receive_definitions(count)?;
            }
        }
        Ok(Statement { id, columns, parameters })
    }

    /// Runs a statement that returns no rows.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn execute_prepared(&mut self, statement: &Statement, parameters: &[Parameter]) -> Result<(), Fault> {
        if parameters.len() != statement.parameters {
            return Err(Fault::Protocol("it prepared a statement with other parameters"));
        }
        let mut arguments = [&statement.id.to_le_bytes(), ONCE.as_slice()].concat();
        if !parameters.is_empty() {
            // None is NULL.
            arguments.resize(arguments.len() + parameters.len().div_ceil(8), 0);
            arguments.push(TYPES_FOLLOW);
            arguments.extend(parameters.iter().flat_map(Parameter::type_code));
            parameters.iter().for_each(|parameter| parameter.append_to(&mut arguments));
        }
        self.command(EXECUTE, &arguments)?;
        self.receive_ok()
    }

    /// Frees a statement. The server does not answer.
    ///
    /// # Errors
    /// [`Fault`].
    #[expect(clippy::needless_pass_by_value, reason = "it cannot be used afterwards")]
    pub fn close(&mut self, statement: Statement) -> Result<(), Fault> {
        self.command(CLOSE, &statement.id.to_le_bytes())
    }
}

impl Parameter<'_> {
    fn type_code(&self) -> [u8; 2] {
        match self {
            Parameter::Number(_) => UNSIGNED,
            Parameter::Bytes(_) => BYTES,
        }
    }

    fn append_to(&self, arguments: &mut Vec<u8>) {
        match self {
            Parameter::Number(number) => arguments.extend(number.to_le_bytes()),
            Parameter::Bytes(bytes) => {
                arguments.push(0xFE);
                arguments.extend((bytes.len() as u64).to_le_bytes());
                arguments.extend(*bytes);
            }
        }
    }
}
