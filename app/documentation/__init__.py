"""The API described by itself: the OpenAPI document, and pages for people made from it."""
