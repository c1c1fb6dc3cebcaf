//! Targets besides the first.

use super::super::error::Fault;
use super::head::Head;
use super::plain::schema_of;
use super::{FurtherTarget, TableOptions, TableProblem, learn};
use crate::matrix::TableEncoding;

/// What the columns are for each further target: all other targets are left out.
pub(super) fn name<T>(
    all: &mut [FurtherTarget<T>],
    (head, target, further): (&Head, Option<usize>, &[usize]),
    table: &TableOptions,
    encoding: &TableEncoding,
) -> Result<(), Fault> {
    let dropped = learn::fields(head, &table.drop)?;
    for (of, own) in all.iter_mut().zip(further) {
        let others = target.iter().chain(further).filter(|field| *field != own);
        let left_out: Vec<usize> = dropped.iter().chain(others).copied().collect();
        let encoding = TableEncoding {
            text_targets: false,
            dropped: learn::dropped_labels(head, Some(*own), &left_out),
            ..encoding.clone()
        };
        of.schema = schema_of(head, Some(*own), encoding);
    }
    Ok(())
}

/// The fields of further targets, none of which is another's or that of the target.
pub(super) fn fields(
    head: &Head,
    target: Option<usize>,
    table: &TableOptions,
) -> Result<Vec<usize>, Fault> {
    if table.schema.is_some() {
        return Ok(Vec::new());
    }
    let fields = learn::fields(head, &table.further)?;
    let mut seen: Vec<usize> = target.into_iter().collect();
    for field in &fields {
        if seen.contains(field) {
            let name = head.label(*field);
            return Err(head.problem(TableProblem::TwiceTarget { name }));
        }
        seen.push(*field);
    }
    Ok(fields)
}
