"""The one shape of every error."""

from marshmallow import Schema, fields


class ErrorSchema(Schema):
    """An error: a sentence for a person, a code for a program, and sometimes details field by field."""

    error = fields.String(required=True)
    code = fields.String(required=True)
    details = fields.Raw()
