//! Messages of rtnetlink(7), as bytes. Pure.

/// Message types and flags of the kernel's include/uapi/linux/{rtnetlink,netlink}.h.
const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const ERROR: u16 = 2;
const REQUEST: u16 = 0x1;
const ACKNOWLEDGE: u16 = 0x4;
const CREATE: u16 = 0x200 | 0x400;

/// Attributes of links (include/uapi/linux/{if_link,veth}.h) and addresses (if_addr.h).
const LINK_NAME: u16 = 3;
const LINK_INFO: u16 = 18;
const LINK_NAMESPACE: u16 = 28;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const VETH_PEER: u16 = 1;
const ADDRESS: u16 = 1;
const LOCAL_ADDRESS: u16 = 2;

const UP: u32 = 1;
const IPV4: u8 = libc::AF_INET as u8;

/// Length of the header of a message.
const HEADER: usize = 16;

/// Creates a pair of connected Ethernet devices, the second in the namespace of a descriptor.
pub fn new_veth(name: &str, peer: &str, namespace: u32) -> Vec<u8> {
    let mut of_peer = link(0, 0);
    put(&mut of_peer, LINK_NAME, &text(peer));
    put(&mut of_peer, LINK_NAMESPACE, &namespace.to_ne_bytes());
    let (mut data, mut info) = (Vec::new(), Vec::new());
    put(&mut data, VETH_PEER, &of_peer);
    put(&mut info, INFO_KIND, &text("veth"));
    put(&mut info, INFO_DATA, &data);
    let mut body = link(0, 0);
    put(&mut body, LINK_NAME, &text(name));
    put(&mut body, LINK_INFO, &info);
    message(NEW_LINK, CREATE, &body)
}

/// Switches a device on.
pub fn switch_on(index: u32) -> Vec<u8> {
    message(NEW_LINK, 0, &link(index, UP))
}

/// Gives a device an IPv4 address.
pub fn new_address(index: u32, address: [u8; 4], prefix: u8) -> Vec<u8> {
    let mut body = vec![IPV4, prefix, 0, 0];
    body.extend_from_slice(&index.to_ne_bytes());
    put(&mut body, LOCAL_ADDRESS, &address);
    put(&mut body, ADDRESS, &address);
    message(NEW_ADDRESS, CREATE, &body)
}

/// Error number of an answer, 0 for success; `None` if it is no answer to a request.
pub fn outcome(answer: &[u8]) -> Option<i32> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let number = i32::from_ne_bytes(answer.get(HEADER..HEADER + 4)?.try_into().ok()?);
    (kind == ERROR).then(|| number.saturating_neg())
}

/// `struct ifinfomsg`.
fn link(index: u32, flags: u32) -> Vec<u8> {
    let mut body = vec![0; 4];
    [index, flags, flags].iter().for_each(|word| body.extend_from_slice(&word.to_ne_bytes()));
    body
}

fn text(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

/// Appends an attribute, padded to four bytes.
fn put(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = value.len() as u16 + 4;
    to.extend_from_slice(&length.to_ne_bytes());
    to.extend_from_slice(&kind.to_ne_bytes());
    to.extend_from_slice(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// `struct nlmsghdr` and the body; the kernel fills in the sender.
fn message(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend_from_slice(&((HEADER + body.len()) as u32).to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&(flags | REQUEST | ACKNOWLEDGE).to_ne_bytes());
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_states_its_length_and_ends_on_a_word() {
        for bytes in [new_veth("a", "longer", 7), switch_on(3), new_address(3, [192, 0, 2, 1], 30)] {
            assert_eq!(u32::from_ne_bytes(bytes[..4].try_into().unwrap()) as usize, bytes.len());
            assert_eq!(bytes.len() % 4, 0);
        }
        let bytes = new_address(3, [192, 0, 2, 1], 30);
        assert_eq!((bytes.len(), &bytes[16..18]), (HEADER + 8 + 16, &[IPV4, 30][..]));
    }

    #[test]
    fn an_answer_has_an_error_number() {
        let answer = |kind: u16, number: i32| {
            let mut bytes = message(kind, 0, &number.to_ne_bytes());
            bytes.extend_from_slice(&[0; 16]);
            outcome(&bytes)
        };
        assert_eq!(answer(ERROR, -libc::EPERM), Some(libc::EPERM));
        assert_eq!((answer(ERROR, 0), answer(NEW_LINK, 0)), (Some(0), None));
        assert_eq!((outcome(&[]), outcome(&[0; 19])), (None, None));
        assert_eq!(answer(ERROR, i32::MIN), Some(i32::MAX));
    }
}
