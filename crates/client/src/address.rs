//! Where a node listens: `HOST:PORT`, or `unix:PATH`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The address of a node's RESP front door.
///
/// ```
/// use testigo::Address;
///
/// let default: Address = Address::DEFAULT.parse()?;
/// assert_eq!(default, Address::Tcp("127.0.0.1:7600".into()));
/// let socket: Address = "unix:/run/testigo/socket".parse()?;
/// assert_eq!(socket, Address::Unix("/run/testigo/socket".into()));
/// # Ok::<(), testigo::BadAddress>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `HOST:PORT`; the host may be a name or, in brackets, an IPv6 address.
    Tcp(String),
    /// `unix:PATH`.
    Unix(PathBuf),
}

impl Address {
    /// The default address of a node.
    pub const DEFAULT: &'static str = "127.0.0.1:7600";
}

/// A text that is not an address, or too many addresses.
///
/// ```
/// let bad = "7600".parse::<testigo::Address>().expect_err("a port alone is no address");
/// assert!(bad.to_string().contains("HOST:PORT"), "{bad}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAddress(String);

impl BadAddress {
    pub(crate) fn many(count: usize, most: usize) -> BadAddress {
        BadAddress(format!("{count} addresses are more than {most}"))
    }

    pub(crate) fn missing(text: &str) -> BadAddress {
        BadAddress(format!("{text:?} has a comma without an address beside it"))
    }

    fn no(text: &str) -> BadAddress {
        BadAddress(format!(
            "{text:?} is no address; write HOST:PORT such as {}, or unix:PATH",
            Address::DEFAULT
        ))
    }
}

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadAddress {}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Address, BadAddress> {
        let bad = || BadAddress::no(text);
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err(bad()),
                path => Ok(Address::Unix(path.into())),
            };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
        let bare_ipv6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
        let port: u16 = port.parse().map_err(|_| bad())?;
        if host.is_empty() || bare_ipv6 || port == 0 || host.contains(char::is_whitespace) {
            return Err(bad());
        }
        Ok(Address::Tcp(text.to_owned()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(text) => f.write_str(text),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_paths_are_addresses() {
        for text in [Address::DEFAULT, "node-1:80", "[::1]:7600", "unix:a/b.sock"] {
            let address: Address = text.parse().expect(text);
            assert_eq!(address.to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_not() {
        for text in [
            "",
            "host",
            ":7600",
            "host:",
            "host:0",
            "host:70000",
            "::1:7600",
            "unix:",
        ] {
            let refused = text.parse::<Address>().expect_err(text);
            assert!(refused.to_string().contains("HOST:PORT"), "{text}");
        }
    }
}
