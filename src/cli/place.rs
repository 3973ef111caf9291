//! Where the store is, and opening it. Only this file reads the environment: the library never does.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use sessionlog::{Store, StoreOptions};

use super::exit::Failure;

/// The variable that names the store when `--store` does not.
const VARIABLE: &str = "SESSIONLOG_STORE";
/// The folder in the system's data folder.
const FOLDER: &str = "sessionlog";

/// Where the store is to be found: what `--store` says, if it was given.
#[derive(Debug)]
pub(crate) struct Place {
    named: Option<PathBuf>,
}

impl Place {
    pub(crate) fn new(named: Option<PathBuf>) -> Self {
        Self { named }
    }

    /// Opens the store that is there. Only `create` makes one: a typing error in a path must not give an empty store
    /// that answers "nothing here".
    pub(crate) fn open(&self) -> Result<Store, Failure> {
        self.open_with(StoreOptions::new().create(false))
    }

    /// Opens the store; creates it where the folder is missing or empty.
    pub(crate) fn open_or_create(&self) -> Result<Store, Failure> {
        self.open_with(StoreOptions::new().create(true))
    }

    /// The store's folder, whatever is there.
    pub(crate) fn path(&self) -> Result<PathBuf, Failure> {
        path(self.named.clone(), |name| env::var_os(name), env::home_dir()).ok_or_else(|| {
            Failure::usage(format!("this system names no data folder: use --store DIR or {VARIABLE}"))
        })
    }

    fn open_with(&self, options: StoreOptions) -> Result<Store, Failure> {
        options.open(self.path()?).map_err(|error| Failure::open(&error))
    }
}

/// An empty variable counts as one that is not set, as the XDG specification has it.
fn path(
    named: Option<PathBuf>,
    variable: impl Fn(&str) -> Option<OsString>,
    home: Option<PathBuf>,
) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = named.or_else(|| set(VARIABLE)) {
        return Some(path);
    }
    let home = home.filter(|home| home.is_absolute());
    let data = if cfg!(target_os = "macos") {
        home?.join("Library/Application Support")
    } else {
        // The specification: a relative path in it is to be ignored.
        match set("XDG_DATA_HOME").filter(|path| path.is_absolute()) {
            Some(data) => data,
            None => home?.join(".local/share"),
        }
    };
    Some(data.join(FOLDER))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::path;

    fn with(named: Option<&str>, variables: &[(&str, &str)], home: Option<&str>) -> Option<PathBuf> {
        let variable = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into());
        path(named.map(PathBuf::from), variable, home.map(PathBuf::from))
    }

    /// Goal: the option goes before the variable, the variable before the data folder; empty means not set.
    #[test]
    fn option_then_variable_then_data_folder() {
        let both = [("SESSIONLOG_STORE", "/from/variable"), ("XDG_DATA_HOME", "/xdg")];
        assert_eq!(with(Some("here"), &both, Some("/home/u")), Some("here".into()));
        assert_eq!(with(None, &both, Some("/home/u")), Some("/from/variable".into()));
        if cfg!(target_os = "macos") {
            let expected = "/home/u/Library/Application Support/sessionlog";
            assert_eq!(with(None, &[], Some("/home/u")), Some(expected.into()));
        } else {
            let unset = [("SESSIONLOG_STORE", ""), ("XDG_DATA_HOME", "/xdg")];
            assert_eq!(with(None, &unset, Some("/home/u")), Some("/xdg/sessionlog".into()));
            let relative = [("XDG_DATA_HOME", "xdg")];
            assert_eq!(
                with(None, &relative, Some("/home/u")),
                Some("/home/u/.local/share/sessionlog".into())
            );
        }
        assert_eq!(with(None, &[], None), None);
    }
}
