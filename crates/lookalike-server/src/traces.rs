//! A span for every request, for OpenTelemetry.
//!
//! Where spans go is said by the variables that all programs with OpenTelemetry have: `OTEL_EXPORTER_OTLP_ENDPOINT` (without
//! it there are none), `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_SERVICE_NAME`. They are sent in groups by a thread of its own, and
//! dropped when the collector does not take them. A request with the header `traceparent` becomes part of that trace.

use std::sync::OnceLock;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{Span, SpanKind, Status, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};

/// Where the collector is.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
const NAME: &str = "lookalike";

struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

static TRACES: OnceLock<Option<Traces>> = OnceLock::new();

/// Begins to send traces, if the environment says where to. Called outside of the runtime: its client waits for answers.
pub(crate) fn start() {
    TRACES.get_or_init(|| {
        ENDPOINTS.iter().find(|name| std::env::var_os(name).is_some())?;
        let exporter = SpanExporter::builder().with_http().build();
        let exporter = exporter.inspect_err(|error| tracing::error!("no traces are sent: {error}")).ok()?;
        let mut resource = Resource::builder();
        if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name(NAME);
        }
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build();
        let tracer = provider.tracer(NAME);
        Some(Traces { provider, tracer })
    });
}

/// Sends what is left.
pub(crate) fn stop() {
    if let Some(Some(traces)) = TRACES.get()
        && let Err(error) = traces.provider.shutdown()
    {
        tracing::warn!("the last traces were not sent: {error}");
    }
}

/// Headers as the propagator reads them.
struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(axum::http::HeaderName::as_str).collect()
    }
}

/// The span of a request.
pub(crate) struct RequestSpan(opentelemetry_sdk::trace::Span);

impl RequestSpan {
    /// None if no traces are sent.
    pub(crate) fn start(request: &Request, route: &str, id: &HeaderValue) -> Option<RequestSpan> {
        let traces = TRACES.get()?.as_ref()?;
        let parent = TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers(request.headers()));
        let method = request.method().as_str();
        let span = traces
            .tracer
            .span_builder(format!("{method} {route}"))
            .with_kind(SpanKind::Server)
            .with_attributes([
                KeyValue::new("http.request.method", method.to_owned()),
                KeyValue::new("http.route", route.to_owned()),
                KeyValue::new("lookalike.request_id", id.to_str().unwrap_or_default().to_owned()),
            ])
            .start_with_context(&traces.tracer, &parent);
        Some(RequestSpan(span))
    }

    pub(crate) fn end(mut self, status: StatusCode) {
        self.0.set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
        if status.is_server_error() {
            self.0.set_status(Status::error(status.to_string()));
        }
        self.0.end();
    }
}
