"""What may be asked, as schemas: the shape of each body, its bounds and its defaults. Unknown fields are refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

LONGEST = 2**20  # letters of a text
MOST = 4096

Text = Annotated[StrictStr, Field(max_length=LONGEST)]
Id = Annotated[StrictInt, Field(ge=0, lt=2**31)]
Ids = Annotated[list[Id], Field(max_length=LONGEST)]
Name = Annotated[StrictStr, Field(min_length=1, max_length=200)]
Count = Annotated[StrictInt, Field(ge=1, le=10**6)]
Place = StrictInt | StrictStr | tuple[StrictInt, StrictInt]
Value = StrictBool | StrictInt | StrictFloat | StrictStr | list[StrictInt | StrictFloat | StrictStr] | None
Options = Annotated[dict[str, Value], Field(max_length=50, description="of the method: GET /methods lists them")]
Seed = Annotated[StrictInt, Field(ge=0, lt=2**63)]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")

    model: Name | None = Field(None, description="of GET /v1/models; the first if not given")
    source: Text | None = Field(None, description="what a model is given that answers about texts given a source")


class ScoreBody(Body):
    texts: Text | Annotated[list[Text], Field(max_length=MOST)]
    method: Name = "pll"
    words: Literal["tokenizer", "whitespace"] = "tokenizer"
    prefix: Text = ""
    suffix: Text = ""
    separator: Annotated[StrictStr, Field(max_length=100)] = " "
    base: Literal["e", "2", "10"] = "e"
    rank: StrictBool = False
    entropy: StrictBool = False
    options: Options = {}


class ChooseBody(Body):
    text: Text
    choices: Annotated[list[Text], Field(min_length=1, max_length=MOST)]
    method: Name | None = None
    of: Literal["sentence", "option"] = "sentence"
    reduction: Literal["sum", "mean"] = "sum"
    options: Options = {}


class JointBody(Body):
    text: Text
    positions: Annotated[list[Place], Field(max_length=1000)] | None = None
    method: Name = "ag"
    outcomes: Literal["text", "all"] = "text"
    candidates: Count | Literal["auto", "all"] = "auto"
    options: Options = {}


class FillBody(Body):
    text: Text
    k: Annotated[StrictInt, Field(ge=1, le=10_000)] = 5
    method: Name = "ag"
    outcomes: Literal["text", "all"] = "text"
    candidates: Count | Literal["auto", "all"] = "auto"
    beam: Annotated[StrictInt, Field(ge=1, le=10_000)] | None = None
    options: Options = {}


class DependenceBody(Body):
    text: Text
    candidates: Annotated[StrictInt, Field(ge=2, le=1024)] = 20
    max_distance: Count | None = None
    method: Name = "ag"


class SampleBody(Body):
    text: Text | None = None
    kernel: Name = "gibbs"
    chains: Annotated[StrictInt, Field(ge=1, le=1024)] = 4
    steps: Count | None = None
    length: Annotated[StrictInt, Field(ge=1, le=4096)] | None = None
    end: Annotated[StrictStr, Field(max_length=100)] = ""
    outcomes: Literal["text", "all"] = "text"
    seed: Seed = 0
    stream: StrictBool = Field(False, description="server-sent events: a `step` now and then, the `result` at the end")
    options: Options = {}


class TranslateBody(Body):
    sources: Text | Annotated[list[Text], Field(max_length=MOST)]
    kernel: Name | None = None
    passes: Count | None = None
    lengths: Annotated[StrictInt, Field(ge=1, le=1024)] = 1
    choose: Name | None = None
    nbest: Annotated[StrictInt, Field(ge=1, le=1024)] = 1
    trace: StrictBool = False
    seed: Seed = 0
    terms: Annotated[list[Annotated[list[Text], Field(max_length=100)]], Field(max_length=MOST)] | None = None
    options: Options = Field({}, description="of the kernel, or of the translation: docs/translation.md")


class CompletionsBody(BaseModel):
    """OpenAI's body; of its many fields those that change what is scored. The others are read over."""

    model_config = ConfigDict(extra="ignore")

    model: Name | None = None
    source: Text | None = None
    prompt: Text | Ids | Annotated[list[Text | Ids], Field(max_length=MOST)]
    max_tokens: Annotated[StrictInt, Field(ge=0)] | None = 16
    echo: StrictBool = False
    logprobs: Annotated[StrictInt, Field(ge=0, le=20)] | None = None
    n: StrictInt | None = 1
    stream: StrictBool | None = False


class TokenizeBody(BaseModel):
    model_config = ConfigDict(extra="ignore")

    model: Name | None = None
    prompt: Text
    add_special_tokens: StrictBool = True


class DetokenizeBody(BaseModel):
    model_config = ConfigDict(extra="ignore")

    model: Name | None = None
    tokens: Ids


class FillMaskParameters(BaseModel):
    model_config = ConfigDict(extra="forbid")

    top_k: Annotated[StrictInt, Field(ge=1, le=1000)] | None = None
    targets: Annotated[list[Text], Field(min_length=1, max_length=1000)] | None = None


class FillMaskBody(BaseModel):
    """Hugging Face's body of the task fill-mask."""

    model_config = ConfigDict(extra="ignore")

    model: Name | None = None
    source: Text | None = None
    inputs: Text
    parameters: FillMaskParameters | None = None


def said(body: Body, *names: str) -> dict[str, Any]:
    """Some fields as keyword arguments."""
    return {name: getattr(body, name) for name in names}
