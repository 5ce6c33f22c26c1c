"""Topic mappings of a bridge: messages take other topics where they cross."""

from typing import Annotated, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from vpnrouter.config.model import Model


class TopicMapping(Model):
    """One rule: `{from, to}`, `{add_prefix}` or `{strip_prefix}`, each with its direction."""

    from_: Annotated[str | None, Field(alias="from")] = None
    """Filter in the dialect of the bridge for topics to map; needs to."""

    to: str | None = None
    """What such a topic becomes; {1}, {2} … are what the wildcards of from matched, in order."""

    add_prefix: Annotated[str | None, Field(examples=["yellow/"])] = None
    """Levels put before every topic."""

    strip_prefix: str | None = None
    """Levels taken away from the topics below them."""

    direction: Literal["in", "out", "both"] = "in"
    """in: messages that this bridge brings; out: messages that a bridge of the remote message VPN
    takes from here; both: in as written, and out the other way round."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        pair = (self.from_ is not None) + (self.to is not None)
        forms = (pair > 0) + (self.add_prefix is not None) + (self.strip_prefix is not None)
        if forms != 1 or pair == 1:
            raise ValueError(
                "a topic mapping has exactly one of from with to, add_prefix, strip_prefix"
            )
        return self

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        """As it stands in a file, where `from` is no word of Python."""
        return {"from" if key == "from_" else key: value for key, value in write(self).items()}
