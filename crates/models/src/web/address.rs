//! Which addresses pages may be visited at: public ones, and those that the settings allow. Sends nothing.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A stretch of addresses: `10.0.0.0/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    /// Leading bits that all of its addresses share.
    bits: u32,
}

impl Network {
    /// Whether the address lies in it.
    pub fn holds(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let shift = 32 - self.bits.min(32);
                u64::from(first.to_bits()) >> shift == u64::from(address.to_bits()) >> shift
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let shift = 128 - self.bits.min(128);
                first.to_bits().checked_shr(shift) == address.to_bits().checked_shr(shift)
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no address such as 127.0.0.1 and no network such as 10.0.0.0/8");
        let (address, bits) = text.trim().split_once('/').map_or((text.trim(), None), |(a, b)| (a, Some(b)));
        let first: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if first.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
        if bits > most { Err(wrong()) } else { Ok(Self { first, bits }) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

/// What may be reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guard {
    /// Places that are not public and may be visited all the same.
    pub allowed: Vec<Network>,
    /// Everything may be reached: for addresses that the settings name, never for those that pages name.
    pub trusting: bool,
}

impl Guard {
    /// What kind of address it is, if it may not be visited.
    pub fn refuses(&self, address: IpAddr) -> Option<&'static str> {
        if self.trusting || self.allowed.iter().any(|network| network.holds(address)) {
            return None;
        }
        private(address)
    }
}

/// Addresses at which clouds answer questions about the machine that asks, outside of the private ranges.
const METADATA: [Ipv4Addr; 2] = [Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];

/// What is not public of an address, if anything.
fn private(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => private_v4(address),
        IpAddr::V6(address) => private_v6(address),
    }
}

fn private_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = address.octets();
    Some(match (a, b, c) {
        _ if METADATA.contains(&address) => "a metadata address",
        (169, 254, _) => "a link-local or metadata address",
        (127, ..) => "this machine",
        (0, ..) => "no address of a host",
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => "a private address",
        (100, 64..=127, _) => "a carrier's private address",
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113) => {
            "a reserved address"
        }
        (224..=239, ..) => "a multicast address",
        (240..=255, ..) => "a reserved address",
        _ => return None,
    })
}

fn private_v6(address: Ipv6Addr) -> Option<&'static str> {
    let parts = address.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    };
    match parts {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("no address of a host"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("this machine"),
        // Ways to write or to reach an IPv4 address: mapped, compatible, translated, NAT64, 6to4.
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => {
            private_v4(embedded(high, low))
        }
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => private_v4(embedded(high, low)),
        [0x2002, high, low, ..] => private_v4(embedded(high, low)),
        [0x64, 0xff9b, ..] => Some("a reserved address"),
        [0x2001, 0..=0x1ff, ..] => Some("a tunnel or reserved address"),
        [0x2001, 0xdb8, ..] | [0x100, 0, 0, 0, ..] | [0x3fff, ..] | [0x5f00, ..] => {
            Some("a reserved address")
        }
        [0xfc00..=0xfdff, ..] => Some("a private address"),
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xfec0..=0xfeff, ..] => Some("a private address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for refused in [
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "224.0.0.251",
            "255.255.255.255",
            "240.0.0.1",
            "198.18.0.1",
            "203.0.113.9",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
        ] {
            assert!(private(refused.parse().unwrap()).is_some(), "{refused}");
        }
        for public in
            ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:1.1.1.1"]
        {
            assert_eq!(private(public.parse().unwrap()), None, "{public}");
        }
    }

    #[test]
    fn what_the_settings_allow_is_allowed_and_nothing_more() {
        let allowed = ["127.0.0.1", "10.0.0.0/8", "fd00::/8"].map(|text| text.parse().unwrap()).to_vec();
        let guard = Guard { allowed, trusting: false };
        for (address, refused) in [
            ("127.0.0.1", false),
            ("127.0.0.2", true),
            ("10.255.0.1", false),
            ("fd12::1", false),
            ("fc00::1", true),
        ] {
            assert_eq!(guard.refuses(address.parse().unwrap()).is_some(), refused, "{address}");
        }
        for wrong in ["10.0.0.0/33", "example.com", "", "10.0.0.0/x", "::/129"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
        assert!("0.0.0.0/0".parse::<Network>().unwrap().holds("9.9.9.9".parse().unwrap()));
        assert!("::/0".parse::<Network>().unwrap().holds("fe80::1".parse().unwrap()));
    }
}
