//! Which bytes may stand where (RFC 9110 section 5.6, RFC 9112 sections 3 and 5).

/// A method or a field name.
pub fn is_token(_bytes: &[u8]) -> bool {
    unimplemented!()
}

/// A field value: no line end and no control character.
pub fn is_field_value(_bytes: &[u8]) -> bool {
    unimplemented!()
}

/// A request target: graphic ASCII without `#`.
pub fn is_target(_bytes: &[u8]) -> bool {
    unimplemented!()
}
