//! Members of a JSON object that are put into its bytes, and those of the same names taken out of them.

use std::ops::Range;

use memchr::{memmem, memrchr};

/// What the names of all members begin with that are put in.
const PREFIX: &[u8] = b"lookalike_";

/// Gives the object in `record` these members, at its end; all bytes of its other members stay.
pub(super) fn replace<const N: usize>(record: &mut Vec<u8>, names: &[&str; N], values: &[String; N]) {
    // Members are looked for only where the object may have such names.
    if memmem::find(record, PREFIX).is_some() {
        take_out(record, names);
    }
    let end = memrchr(b'}', record).unwrap_or(record.len());
    let is_empty = record[..end].trim_ascii_end().ends_with(b"{");
    let mut added = String::new();
    for (name, value) in names.iter().zip(values) {
        added.push_str(if added.is_empty() && is_empty { "\"" } else { ",\"" });
        added.push_str(&format!("{name}\":{value}"));
    }
    record.splice(end..end, added.into_bytes());
}

fn take_out(record: &mut Vec<u8>, names: &[&str]) {
    let members = members(record);
    let (Some(first), Some(last)) = (members.first(), members.last()) else { return };
    let is_other =
        |member: &&Range<usize>| !name(&record[(*member).clone()]).is_some_and(|name| names.contains(&&*name));
    let others: Vec<&[u8]> = members.iter().filter(is_other).map(|member| &record[member.clone()]).collect();
    if others.len() < members.len() {
        let (from, to) = (first.start, last.end);
        let others = others.join(&b","[..]);
        record.splice(from..to, others);
    }
}

/// The members of an object, with the white space around them, without the commas between them.
fn members(object: &[u8]) -> Vec<Range<usize>> {
    let (mut members, mut depth, mut start) = (Vec::new(), 0usize, 0);
    let (mut is_string, mut is_escaped) = (false, false);
    for (at, &byte) in object.iter().enumerate() {
        if is_string {
            (is_string, is_escaped) = (is_escaped || byte != b'"', !is_escaped && byte == b'\\');
            continue;
        }
        match byte {
            b'"' => is_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth == 1 {
                    start = at + 1;
                }
            }
            b',' if depth == 1 => {
                members.push(start..at);
                start = at + 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    members.push(start..at);
                    return members;
                }
            }
            _ => {}
        }
    }
    members
}

/// The name of a member.
fn name(member: &[u8]) -> Option<String> {
    serde_json::Deserializer::from_slice(member).into_iter::<String>().next()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_the_same_names_are_replaced_and_nothing_else_changes() {
        let names = ["lookalike_a", "lookalike_b"];
        let values = ["1".to_owned(), "\"x\"".to_owned()];
        for (before, after) in [
            ("{\"t\": 1}\n", "{\"t\": 1,\"lookalike_a\":1,\"lookalike_b\":\"x\"}\n"),
            (
                "{ \"t\" : \"the \\\"lookalike_a\\\": 2, } field\\\\\" } \r\n",
                "{ \"t\" : \"the \\\"lookalike_a\\\": 2, } field\\\\\" ,\"lookalike_a\":1,\"lookalike_b\":\"x\"} \r\n",
            ),
            (
                "{\"lookalike_a\": {\"x\": [1, {}]}, \"t\": {\"lookalike_a\": 0}, \"lookalike_b\" :null,\"u\":[ 1,2 ]}",
                "{ \"t\": {\"lookalike_a\": 0},\"u\":[ 1,2 ],\"lookalike_a\":1,\"lookalike_b\":\"x\"}",
            ),
            ("\u{feff}{\"lookalike_b\":1}", "\u{feff}{\"lookalike_a\":1,\"lookalike_b\":\"x\"}"),
            ("{\"lookalike_c\":1}", "{\"lookalike_c\":1,\"lookalike_a\":1,\"lookalike_b\":\"x\"}"),
        ] {
            let mut record = before.as_bytes().to_vec();
            replace(&mut record, &names, &values);
            assert_eq!(String::from_utf8(record).unwrap(), after);
        }
    }
}
