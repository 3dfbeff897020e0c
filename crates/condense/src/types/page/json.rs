//! Page captures stored as JSON: an object with `zones`, and anything else that was extracted.
//!
//! Knows where members of objects start and end; reads no values except a zone's kind and confidence. Nothing is
//! parsed into a tree, so nesting is harmless, and a text that does not parse to its end is not such a capture.

use std::ops::Range;

use super::{FULL, KEY_FIELDS, Role, ZoneKind, ZoneStretch, is_key_field};

const ZONES: [&str; 3] = ["zones", "content_zones", "ocr_items"];
const KIND: [&str; 5] = ["kind", "zone_type", "type", "zone", "name"];
const CONFIDENCE: [&str; 2] = ["confidence", "score"];
const TEXT: [&str; 3] = ["raw_text", "text", "content"];
const FIELDS: [&str; 6] = ["fields", "extracted_fields", "extracted", "data", "items", "values"];
/// The maximum size of members that count as metadata, such as where and when the capture was made.
const LONGEST_METADATA: usize = 300;

/// The ranges of `text`; `None` if it is not a JSON object.
pub(super) fn stretches(text: &str) -> Option<Vec<ZoneStretch>> {
    let start = text.len() - text.trim_start().len();
    let end = text.trim_end().len();
    if !text[start..].starts_with('{') || value_end(text, start) != Some(end) {
        return None;
    }
    let mut out = Out { text, stretches: Vec::new(), zones: 0 };
    out.object(0..text.len(), start)?;
    Some(out.stretches)
}

/// A member of an object or an array.
struct CaptureMember {
    /// From the key (or value) to the next one, or to the end of its container.
    range: Range<usize>,
    key: Range<usize>,
    value: Range<usize>,
}

struct Out<'a> {
    text: &'a str,
    stretches: Vec<ZoneStretch>,
    zones: usize,
}

impl Out<'_> {
    fn push(&mut self, range: Range<usize>, role: Role, zone: (usize, ZoneKind, f64)) {
        if range.is_empty() {
            return;
        }
        let (zone, kind, confidence) = zone;
        self.stretches.push(ZoneStretch { range, role, zone, kind, confidence });
    }

    /// Reads the capture itself at `range`; its brace is at `at`.
    fn object(&mut self, range: Range<usize>, at: usize) -> Option<()> {
        let members = members(self.text, at)?;
        let first = members.first().map_or(range.end, |member| member.range.start);
        self.push(range.start..first, Role::Metadata, (0, ZoneKind::Other, 1.0));
        for (index, member) in members.iter().enumerate() {
            let end = members.get(index + 1).map_or(range.end, |next| next.range.start);
            let member_range = member.range.start..end;
            let key = unquoted(&self.text[member.key.clone()]);
            let opens = self.text[member.value.clone()].starts_with(['[', '{']);
            if ZONES.contains(&key) && opens {
                self.zone_list(member_range, member.value.start)?;
            } else if !opens && member.value.len() <= LONGEST_METADATA {
                self.push(member_range, Role::Metadata, (0, ZoneKind::Other, 1.0));
            } else {
                self.zones += 1;
                let role = if opens { Role::Structured } else { Role::Text };
                self.push(member_range, role, (self.zones, ZoneKind::of(key), 1.0));
            }
        }
        Some(())
    }

    /// Zones in an array, or in an object by kind.
    fn zone_list(&mut self, range: Range<usize>, at: usize) -> Option<()> {
        let zones = members(self.text, at)?;
        let first = zones.first().map_or(range.end, |zone| zone.range.start);
        self.push(range.start..first, Role::Metadata, (0, ZoneKind::Other, 1.0));
        for (index, zone) in zones.iter().enumerate() {
            let end = zones.get(index + 1).map_or(range.end, |next| next.range.start);
            self.zone(zone.range.start..end, zone)?;
        }
        Some(())
    }

    fn zone(&mut self, range: Range<usize>, zone: &CaptureMember) -> Option<()> {
        self.zones += 1;
        let text = self.text;
        let members = if text[zone.value.clone()].starts_with('{') {
            members(text, zone.value.start)?
        } else {
            Vec::new()
        };
        let find = |names: &[&str]| {
            let named =
                |name: &&str| members.iter().find(|member| unquoted(&text[member.key.clone()]) == *name);
            names.iter().find_map(named).map(|member| unquoted(&text[member.value.clone()]))
        };
        let kind = ZoneKind::of(find(&KIND).unwrap_or_else(|| unquoted(&text[zone.key.clone()])));
        // A zone that states no confidence is fully trusted.
        let confidence = find(&CONFIDENCE).and_then(|value| value.parse().ok()).unwrap_or(1.0);
        let this = (self.zones, kind, confidence);
        if !members.is_empty() && is_middling(confidence) && self.says_nothing(&members) {
            self.push(range, Role::Dropped, this);
            return Some(());
        }
        if members.is_empty() {
            let role = if confidence < KEY_FIELDS { Role::Dropped } else { Role::Structured };
            self.push(range, role, this);
            return Some(());
        }
        self.push(range.start..members[0].range.start, role(confidence, Role::Structured), this);
        for (index, member) in members.iter().enumerate() {
            let end = members.get(index + 1).map_or(range.end, |next| next.range.start);
            self.member(member.range.start..end, member, this)?;
        }
        Some(())
    }

    /// The fields of a zone, if `member` holds some.
    fn fields(&self, member: &CaptureMember) -> Option<Vec<CaptureMember>> {
        let key = unquoted(&self.text[member.key.clone()]);
        let holds = FIELDS.contains(&key) && self.text[member.value.clone()].starts_with('{');
        if holds { members(self.text, member.value.start) } else { None }
    }

    fn is_key(&self, field: &CaptureMember) -> bool {
        is_key_field(unquoted(&self.text[field.key.clone()]))
    }

    /// Whether a zone of middling confidence has nothing besides what it is, its text, and fields that are not key.
    fn says_nothing(&self, members: &[CaptureMember]) -> bool {
        let is_frame = |member: &CaptureMember| {
            let key = unquoted(&self.text[member.key.clone()]);
            [&KIND[..], &CONFIDENCE, &TEXT].iter().any(|names| names.contains(&key))
        };
        let lacks_key = |fields: Vec<CaptureMember>| !fields.iter().any(|field| self.is_key(field));
        members.iter().all(|member| is_frame(member) || self.fields(member).is_some_and(lacks_key))
    }

    fn member(
        &mut self,
        range: Range<usize>,
        member: &CaptureMember,
        zone: (usize, ZoneKind, f64),
    ) -> Option<()> {
        let (text, confidence) = (self.text, zone.2);
        let key = unquoted(&text[member.key.clone()]);
        if TEXT.contains(&key) {
            let role = if confidence < FULL { Role::Dropped } else { Role::Text };
            self.push(range, role, zone);
        } else if is_middling(confidence)
            && let Some(fields) = self.fields(member)
        {
            if !fields.iter().any(|field| self.is_key(field)) {
                self.push(range, Role::Dropped, zone);
                return Some(());
            }
            let first = fields.first().map_or(range.end, |field| field.range.start);
            self.push(range.start..first, Role::Structured, zone);
            for (index, field) in fields.iter().enumerate() {
                let end = fields.get(index + 1).map_or(range.end, |next| next.range.start);
                let kept = self.is_key(field);
                // The brace after the last field closes those that are kept.
                let own = if kept { end } else { field.range.end };
                self.push(field.range.start..own, if kept { Role::Structured } else { Role::Dropped }, zone);
                self.push(own..end, Role::Structured, zone);
            }
        } else {
            self.push(range, role(confidence, Role::Structured), zone);
        }
        Some(())
    }
}

/// Whether a zone is shown by its key fields alone (R0-22.17).
fn is_middling(confidence: f64) -> bool {
    (KEY_FIELDS..FULL).contains(&confidence)
}

fn role(confidence: f64, role: Role) -> Role {
    // Not `<`, so that NaN is dropped too.
    if confidence >= KEY_FIELDS { role } else { Role::Dropped }
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches('"')
}

/// The members of the object or array that starts at `at`.
fn members(text: &str, at: usize) -> Option<Vec<CaptureMember>> {
    let bytes = text.as_bytes();
    let object = bytes.get(at) == Some(&b'{');
    let mut members: Vec<CaptureMember> = Vec::new();
    let mut at = skip_white(bytes, at + 1);
    while !matches!(bytes.get(at)?, b'}' | b']') {
        let start = at;
        let key = if object {
            at = value_end(text, at)?;
            let key = start..at;
            at = skip_white(bytes, at);
            if bytes.get(at) != Some(&b':') {
                return None;
            }
            at = skip_white(bytes, at + 1);
            key
        } else {
            start..start
        };
        let value = at..value_end(text, at)?;
        at = skip_white(bytes, value.end);
        if bytes.get(at) == Some(&b',') {
            at = skip_white(bytes, at + 1);
        }
        members.push(CaptureMember { range: start..at, key, value });
    }
    Some(members)
}

fn skip_white(bytes: &[u8], at: usize) -> usize {
    at + bytes.get(at..).unwrap_or_default().iter().take_while(|b| b.is_ascii_whitespace()).count()
}

/// The end of the value that starts at `at`.
fn value_end(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut depth, mut i) = (0_usize, at);
    loop {
        match bytes.get(i)? {
            b'"' => {
                i += 1;
                loop {
                    i += memchr::memchr2(b'"', b'\\', bytes.get(i..)?)?;
                    if bytes[i] == b'"' {
                        break;
                    }
                    i += 2;
                }
                i += 1;
            }
            b'{' | b'[' => {
                depth += 1;
                i += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                i += 1;
            }
            _ if depth > 0 => i += 1,
            _ => {
                let scalar = |b: &&u8| {
                    !b.is_ascii_whitespace() && !matches!(b, b',' | b'}' | b']' | b':' | b'"' | b'{' | b'[')
                };
                let len = bytes[i..].iter().take_while(scalar).count();
                return (len > 0).then_some(i + len);
            }
        }
        if depth == 0 {
            return Some(i);
        }
    }
}
