//! Columns that are added to rows.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::report::sinks::records::annotate::{Annotation, FIELDS};

const TYPES: [DataType; 6] =
    [DataType::Utf8, DataType::UInt64, DataType::Boolean, DataType::Utf8, DataType::Float64, DataType::Utf8];

fn is_ours(field: &Field) -> bool {
    FIELDS.contains(&field.name().as_str())
}

/// A schema with the columns that are added, behind all others.
pub(super) fn annotated_schema(schema: &SchemaRef) -> SchemaRef {
    let others = schema.fields().iter().filter(|field| !is_ours(field)).cloned();
    let added = FIELDS.iter().zip(TYPES).map(|(name, of)| Arc::new(Field::new(*name, of, true)));
    let fields: Vec<Arc<Field>> = others.chain(added).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Rows with the columns that are added.
pub(super) fn annotated(batch: &RecordBatch, schema: &SchemaRef, added: AddedColumns) -> Result<RecordBatch> {
    let fields = batch.schema();
    let others = fields.fields().iter().zip(batch.columns()).filter(|(field, _)| !is_ours(field));
    let columns = others.map(|(_, column)| Arc::clone(column)).chain(added.finish()).collect();
    RecordBatch::try_new(Arc::clone(schema), columns)
        .map_err(|error| Error::internal(format!("columns do not fit their rows: {error}")))
}

/// The added columns of some rows.
#[derive(Default)]
pub(super) struct AddedColumns {
    cluster: StringBuilder,
    cluster_size: UInt64Builder,
    kept: BooleanBuilder,
    similarity: Float64Builder,
    kind: StringBuilder,
}

impl AddedColumns {
    pub(super) fn push(&mut self, added: Option<&Annotation<'_>>) {
        self.cluster.append_option(added.map(|added| added.kept_id));
        self.cluster_size.append_option(added.map(|added| added.cluster_size));
        self.kept.append_option(added.map(|added| added.kept));
        self.similarity.append_option(added.map(|added| added.similarity));
        self.kind.append_option(added.map(|added| added.kind));
    }

    fn finish(mut self) -> [ArrayRef; 6] {
        // A group is named by its kept page.
        let cluster: ArrayRef = Arc::new(self.cluster.finish());
        [
            Arc::clone(&cluster),
            Arc::new(self.cluster_size.finish()),
            Arc::new(self.kept.finish()),
            cluster,
            Arc::new(self.similarity.finish()),
            Arc::new(self.kind.finish()),
        ]
    }
}
