"""Errors as shown: ``{error, code, details?}``, whatever went wrong (interface section 7)."""

from marshmallow import Schema, fields


class ErrorSchema(Schema):
    """What went wrong: a sentence for a person, a code for a program, and where there is more to say, details."""

    error = fields.String(required=True)
    code = fields.String(required=True)
    details = fields.Raw()
