"""What the tests of the programs saw of each model, which a page of the site tells."""

import json
import os

import pytest

from tools.model.chapters import ROOT

RECORD = ROOT / "programs" / "tried.json"


@pytest.fixture
def tried():
    """Compare what a test saw with the record, or write it where RECORD=1.

    It takes a program's name, an engine, and for each model "right" or the reason of
    the refusal; what is no ordinary model is left out.
    """

    import ordinary  # and with it Keras, which is slow

    def tried(program: str, engine: str, seen: dict[str, str]) -> None:
        record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
        seen = {name: seen[name] for name in ordinary.MODELS if name in seen}
        known = record.setdefault(program, {})
        if os.environ.get("RECORD"):
            for name, answer in seen.items():
                known.setdefault(name, {})[engine] = answer
            text = json.dumps(dict(sorted(record.items())), indent=1)
            RECORD.write_text(text + "\n")
        found = {name: known.get(name, {}).get(engine) for name in seen}
        assert found == seen, "Fix: RECORD=1, and look at the page of the programs"

    return tried
