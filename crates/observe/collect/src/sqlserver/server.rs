//! The server's version and edition, and the permissions that its views need.

use tds::Row;

pub(super) const QUERY: &str = "SELECT CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)) AS version, \
     CAST(SERVERPROPERTY('EngineEdition') AS int) AS engine_edition, CAST(@@SERVERNAME AS nvarchar(128)) AS server_name, \
     CAST(SUSER_SNAME() AS nvarchar(128)) AS login_name, CAST(USER_NAME() AS nvarchar(128)) AS user_name";

/// EngineEdition of Azure SQL Database and of SQL database in Fabric: one database, without the server's views.
const SINGLE_DATABASE: [i64; 2] = [5, 12];
/// Synapse, dedicated and serverless, has other views.
const SYNAPSE: [i64; 2] = [6, 11];
/// 2022: VIEW SERVER STATE was divided into two permissions.
const DIVIDED_PERMISSION: u32 = 16;

/// The server behind a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Server {
    pub name: String,
    /// 11 is 2012, 16 is 2022. Azure SQL Database always reports 12.
    pub major: u32,
    pub is_single_database: bool,
    pub is_synapse: bool,
    login: String,
    user: String,
}

impl Server {
    pub fn from_row(row: &Row) -> Server {
        let text = |name: &str| row.text(name).unwrap_or_default().to_owned();
        let edition = row.int("engine_edition").unwrap_or_default();
        let major = text("version").split('.').next().and_then(|major| major.parse().ok());
        Server {
            name: text("server_name"),
            major: major.unwrap_or_default(),
            is_single_database: SINGLE_DATABASE.contains(&edition),
            is_synapse: SYNAPSE.contains(&edition),
            login: text("login_name"),
            user: text("user_name"),
        }
    }

    /// The statement that lets this login read the statistics.
    pub fn grant(&self) -> String {
        match self.is_single_database {
            true => format!(
                "GRANT VIEW DATABASE STATE TO {}; in Basic, S0, S1 and elastic pools, in the database master: ALTER \
                 SERVER ROLE ##MS_ServerStateReader## ADD MEMBER {};",
                quoted(&self.user),
                quoted(&self.login)
            ),
            false if self.major >= DIVIDED_PERMISSION => {
                format!("USE master; GRANT VIEW SERVER PERFORMANCE STATE TO {};", quoted(&self.login))
            }
            false => format!("USE master; GRANT VIEW SERVER STATE TO {};", quoted(&self.login)),
        }
    }

    /// The statement that lets it see the names of all files.
    pub fn grant_names(&self) -> String {
        format!("USE master; GRANT VIEW ANY DEFINITION TO {};", quoted(&self.login))
    }
}

/// Quotes a name: [headroom].
fn quoted(name: &str) -> String {
    format!("[{}]", name.replace(']', "]]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(major: u32, is_single_database: bool) -> Server {
        Server {
            major,
            is_single_database,
            login: "DOM\\a]b".into(),
            user: "ann".into(),
            ..Server::default()
        }
    }

    #[test]
    fn the_grant_is_the_statement_of_the_servers_version() {
        assert_eq!(server(15, false).grant(), "USE master; GRANT VIEW SERVER STATE TO [DOM\\a]]b];");
        assert_eq!(
            server(16, false).grant(),
            "USE master; GRANT VIEW SERVER PERFORMANCE STATE TO [DOM\\a]]b];"
        );
        assert!(server(12, true).grant().starts_with("GRANT VIEW DATABASE STATE TO [ann];"));
    }
}
