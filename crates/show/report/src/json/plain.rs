//! Values of serialised types.

use serde::Serialize;
use serde_json::Value;

/// With the fields of both.
pub fn add(value: &mut Value, more: Value) {
    if let (Value::Object(fields), Value::Object(more)) = (value, more) {
        fields.extend(more);
    }
}

/// The value as it serialises; none of the types here can fail to.
pub fn plain(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}
