import importlib.metadata
import importlib.util
import subprocess
import sys

from packaging.requirements import Requirement


def require(*requirements):
    """Check packages such as "keras>=3.13"; on Colab, install what is missing.

    Raises ImportError with one line that names what to install.
    """
    distributions, wrong = importlib.metadata.packages_distributions(), []
    on_colab = "google.colab" in sys.modules
    for text in requirements:
        wanted = Requirement(text)
        if on_colab and importlib.util.find_spec(wanted.name) is None:
            subprocess.run([sys.executable, "-m", "pip", "install", "-q", text])
            importlib.invalidate_caches()
            distributions = importlib.metadata.packages_distributions()
        names = distributions.get(wanted.name, [])
        found = [importlib.metadata.version(name) for name in names]
        if not any(wanted.specifier.contains(v, prereleases=True) for v in found):
            wrong.append(f"{text} (here: {', '.join(found) or 'missing'})")
    if wrong:
        fix = " ".join(f"'{text}'" for text in requirements)
        raise ImportError(
            f"this chapter needs {' and '.join(wrong)}. "
            f"Fix: pip install {fix}, then restart the kernel."
        )
