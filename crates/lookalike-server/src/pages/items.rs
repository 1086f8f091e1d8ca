//! The pages of a batch: cut out of a body that arrives in parts, as lines or as the elements of a JSON array.
//!
//! Only the ends of items are found here; what is between them is parsed, and may be wrong, one by one.

use std::sync::Arc;

use axum::http::HeaderMap;
use bytes::{Buf, Bytes};

use crate::body::{BodyReader, check_type};
use crate::budget::{MemoryBudget, Reservation};
use crate::limits::Limits;
use crate::problem::{Problem, ProblemKind};

pub(super) const NDJSON: [&str; 4] =
    ["application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"];
pub(super) const JSON: &str = "application/json";

/// How the pages of a batch are written down, and the answers to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchForm {
    /// One JSON object per line.
    Lines,
    /// One JSON array.
    Array,
}

impl BatchForm {
    /// The form that the type of a body says.
    pub(super) fn of(headers: &HeaderMap) -> Result<BatchForm, Problem> {
        if check_type(headers, &[JSON]).is_ok() {
            return Ok(BatchForm::Array);
        }
        check_type(headers, &NDJSON).map(|()| BatchForm::Lines)
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            BatchForm::Lines => NDJSON[0],
            BatchForm::Array => JSON,
        }
    }

    /// What an item is called.
    pub(super) fn item(self) -> &'static str {
        match self {
            BatchForm::Lines => "line",
            BatchForm::Array => "element",
        }
    }
}

/// Where a byte of an array is: in which depth below it, and whether within a string.
#[derive(Debug, Default)]
struct Nesting {
    depth: usize,
    is_string: bool,
    is_escaped: bool,
}

impl Nesting {
    /// The comma or bracket that ends an element of the array, if it is in this part.
    fn find_end(&mut self, part: &[u8]) -> Option<usize> {
        for (at, &byte) in part.iter().enumerate() {
            if self.is_string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.is_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.is_string = true,
                b'{' | b'[' => self.depth += 1,
                b',' | b']' if self.depth == 0 => return Some(at),
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        None
    }
}

/// The items of a body that arrives in parts.
pub(super) struct Items {
    form: BatchForm,
    body: BodyReader,
    limits: Limits,
    /// What has arrived behind the current item.
    part: Bytes,
    /// The current item, as far as it has arrived.
    item: Vec<u8>,
    /// What it takes.
    memory: Reservation,
    budget: Arc<MemoryBudget>,
    nesting: Nesting,
    /// Elements so far.
    count: usize,
    is_closed: bool,
}

/// An item and the memory that it takes.
type HeldItem = (Vec<u8>, Reservation);

impl Items {
    /// Reads up to the first item: whatever is not an array is refused as a whole.
    pub(super) async fn open(
        form: BatchForm,
        body: BodyReader,
        limits: Limits,
        budget: &Arc<MemoryBudget>,
    ) -> Result<Items, Problem> {
        let mut items = Items {
            form,
            body,
            limits,
            part: Bytes::new(),
            item: Vec::new(),
            memory: budget.reservation(),
            budget: Arc::clone(budget),
            nesting: Nesting::default(),
            count: 0,
            is_closed: false,
        };
        if form == BatchForm::Array {
            match items.next_visible().await? {
                Some(b'[') => items.part.advance(1),
                Some(_) => return Err(ProblemKind::BadJson.with("the body must be an array of pages")),
                None => return Err(ProblemKind::BadJson.with("the body is empty")),
            }
        }
        Ok(items)
    }

    /// The next item; nothing after the last one.
    pub(super) async fn next(&mut self) -> Result<Option<HeldItem>, Problem> {
        match self.form {
            BatchForm::Lines => self.next_line().await,
            BatchForm::Array => self.next_element().await,
        }
    }

    async fn next_line(&mut self) -> Result<Option<HeldItem>, Problem> {
        loop {
            let end = self.part.iter().position(|&byte| byte == b'\n');
            self.extend(end).await?;
            if end.is_some() {
                return Ok(Some(self.take()));
            }
            if !self.receive().await? {
                return Ok((!self.item.is_empty()).then(|| self.take()));
            }
        }
    }

    async fn next_element(&mut self) -> Result<Option<HeldItem>, Problem> {
        while !self.is_closed {
            let end = self.nesting.find_end(&self.part);
            self.is_closed = end.is_some_and(|end| self.part[end] == b']');
            self.extend(end).await?;
            if end.is_some() {
                if self.count == 0 && self.is_closed && self.item.iter().all(u8::is_ascii_whitespace) {
                    break;
                }
                self.count += 1;
                return Ok(Some(self.take()));
            }
            if !self.receive().await? {
                let reason = format!("the array breaks off after {} complete elements", self.count);
                return Err(ProblemKind::BadJson.with(reason));
            }
        }
        match self.next_visible().await? {
            None => Ok(None),
            Some(_) => Err(ProblemKind::BadJson.with("the body goes on after the end of the array")),
        }
    }

    /// The next byte that is not white space; it is not taken.
    async fn next_visible(&mut self) -> Result<Option<u8>, Problem> {
        loop {
            let blank = self.part.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.part.advance(blank);
            if let Some(&byte) = self.part.first() {
                return Ok(Some(byte));
            }
            if !self.receive().await? {
                return Ok(None);
            }
        }
    }

    /// Moves what has arrived to the current item: up to `end`, which is left out, or all.
    async fn extend(&mut self, end: Option<usize>) -> Result<(), Problem> {
        let rest = self.part.split_to(end.unwrap_or(self.part.len()));
        let length = self.item.len() + rest.len();
        let limit = self.limits.body_bytes;
        if length > limit {
            let reason = format!("this {} is longer than {limit} bytes; the rest is not read", self.form.item());
            return Err(ProblemKind::TooLarge.with(reason));
        }
        if length > self.item.capacity() {
            let wanted = (self.item.capacity() * 2).min(limit).max(length);
            // What this batch has in hand is given back as it is answered.
            self.memory.wait_to_grow_to(wanted, self.limits.request_time).await?;
            self.item.reserve_exact(wanted - self.item.len());
        }
        self.item.extend_from_slice(&rest);
        if end.is_some() {
            self.part.advance(1);
        }
        Ok(())
    }

    /// The current item, which is complete.
    fn take(&mut self) -> HeldItem {
        let memory = std::mem::replace(&mut self.memory, self.budget.reservation());
        (std::mem::take(&mut self.item), memory)
    }

    /// Waits for the next part; says whether there is one.
    async fn receive(&mut self) -> Result<bool, Problem> {
        match self.body.next().await? {
            Some(part) => self.part = part,
            None => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use futures_util::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use std::convert::Infallible;

    use super::*;
    use crate::Service;
    use crate::settings::Settings;

    /// The items of a body that arrives in parts of `size` bytes, and the problem at its end.
    async fn cut(form: BatchForm, text: &str, size: usize) -> (Vec<String>, Option<Problem>) {
        let parts: Vec<_> = text
            .as_bytes()
            .chunks(size)
            .map(|part| Ok::<_, Infallible>(Frame::data(Bytes::copy_from_slice(part))))
            .collect();
        let body = Body::new(StreamBody::new(stream::iter(parts)));
        let limits = Limits { body_bytes: 40, ..Limits::default() };
        let service = Service::new(Settings::new("not-there".into()), tokio::runtime::Handle::current()).unwrap();
        let reader = BodyReader::of_batch(&service, &HeaderMap::new(), body, Arc::default()).unwrap();
        let mut items = match Items::open(form, reader, limits, &service.memory).await {
            Ok(items) => items,
            Err(problem) => return (Vec::new(), Some(problem)),
        };
        let mut found = Vec::new();
        loop {
            match items.next().await {
                Ok(Some((item, _))) => found.push(String::from_utf8(item).unwrap()),
                Ok(None) => return (found, None),
                Err(problem) => return (found, Some(problem)),
            }
        }
    }

    #[tokio::test]
    async fn items_are_the_same_in_parts_of_any_size() {
        let array = r#" [ {"a":"],\"[\\"},[1,[2,{}]] ,"x,]", 3,{} ] "#;
        let elements = [r#" {"a":"],\"[\\"}"#, "[1,[2,{}]] ", r#""x,]""#, " 3", "{} "];
        for size in 1..=array.len() {
            let (found, problem) = cut(BatchForm::Array, array, size).await;
            assert!(problem.is_none(), "{problem:?}");
            assert_eq!(found, elements, "in parts of {size}");
            let (found, problem) = cut(BatchForm::Lines, "{}\n\n[\"a\"]\nlast", size).await;
            assert!(problem.is_none());
            assert_eq!(found, ["{}", "", "[\"a\"]", "last"]);
        }
    }

    #[tokio::test]
    async fn what_is_not_an_array_is_a_problem_after_its_good_elements() {
        for (text, count, detail) in [
            ("", 0, "empty"),
            (" \n", 0, "empty"),
            ("{}", 0, "must be an array"),
            ("[", 0, "after 0 complete"),
            ("[{},{}", 1, "after 1 complete"),
            ("[{},\"never closed]", 1, "after 1 complete"),
            ("[{}]]", 1, "goes on"),
            ("[][]", 0, "goes on"),
            ("[{},012345678901234567890123456789012345678901]", 1, "longer than 40"),
        ] {
            for size in 1..=text.len().max(1) {
                let (found, problem) = cut(BatchForm::Array, text, size).await;
                assert_eq!(found.len(), count, "{text}");
                let problem = problem.unwrap();
                assert!(problem.detail.contains(detail), "{text}: {problem:?}");
            }
        }
        for (text, count) in [("[]", 0), ("[ ]", 0), ("[1,]", 2), ("[,]", 2), (" [1]\n", 1)] {
            let (found, problem) = cut(BatchForm::Array, text, 1).await;
            assert!(problem.is_none() && found.len() == count, "{text}: {found:?}");
        }
    }
}
