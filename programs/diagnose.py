"""Why does Keras not use my GPU? Each broken link, with its cause, fix and source.

Use: `python diagnose.py`, with the Python that does not find the GPU, or
`python diagnose.py jax` for one of tensorflow, jax, torch and openvino. No package
has to be installed, and nothing on the machine is changed.
It does not know AMD's cards. An earlier form was tried on an H200 with JAX and PyTorch;
no form was tried on a card with TensorFlow, an Intel GPU, Windows or a Mac.
"""

import contextlib
import ctypes
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata, util
from pathlib import Path

ENGINES = ("tensorflow", "jax", "torch", "openvino")
TABLE = """\
card Colab | this Colab runtime has no GPU
Runtime > Change runtime type > T4 GPU | research.google.com/colaboratory/faq.html
card container | this container was given no GPU
start it with --gpus all (Intel: --device /dev/dri) | NVIDIA/nvidia-docker#1071
card WSL2 | no NVIDIA driver answers in WSL2 (no fault if the GPU is Intel's)
the newest driver, in Windows; wsl --update | docs.nvidia.com/cuda/wsl-user-guide
card Mac | on a Mac PyTorch alone reaches the GPU (mps), and it does not here
pip install torch; KERAS_BACKEND=torch | docs.pytorch.org/docs/stable/notes/mps.html
card none | the system shows no NVIDIA and no Intel GPU
check slot, power, BIOS, a VM's passthrough; or use Colab | docs.nvidia.com/cuda
driver none | an NVIDIA card, and no driver
install it (WSL2: in Windows; container: --gpus all) | NVIDIA/nvidia-docker#1071
driver libcuda | nvidia-smi works; libcuda, the driver's part that computes, is missing
NVIDIA_DRIVER_CAPABILITIES=compute,utility; or reinstall | mudler/LocalAI#11973
driver mismatch | the driver's library and its kernel module differ: it was updated
reboot | tensorflow/tensorflow#52530
driver fails | the driver fails: {}
reboot; 802: nvidia-fabricmanager; 999: nvidia-modprobe -u | docs.nvidia.com/cuda
visible | {}
unset the variable, start Python again | pytorch/pytorch#49081
kernel | an Intel GPU, and no kernel driver (i915, xe) for it
install a newer kernel | intel-gpu/intel-gpu-i915-backports#209
file | an Intel GPU, and no device file /dev/dri/renderD*
container: --device /dev/dri | open-edge-platform/geti-instant-learn#583
permission | you may not open the Intel GPU's device file
join the group render, log in again | intel/intel-extension-for-pytorch#625
compute | {} is built for Intel's GPUs and finds none
its compute driver (chapter 11), Resizable BAR | intel/compute-runtime#872
package none | none of the engines is installed in {}
start the Python you meant; or pip install keras jax | keras.io/getting_started
package broken | {}
install it in a new environment; SIGILL: no AVX | www.tensorflow.org/install/pip
package tensorflow | this TensorFlow has no CUDA code
pip install "tensorflow[and-cuda]", not tensorflow-cpu | www.tensorflow.org/install/pip
package Arm | TensorFlow's wheels for Arm hold no CUDA code
KERAS_BACKEND=jax or torch; NVIDIA's container | tensorflow/tensorflow#121157
package Windows | {} has no CUDA code for Windows
run Python in WSL2; or KERAS_BACKEND=torch | www.tensorflow.org/install/pip
package jax | JAX's plug-in for CUDA: {}
pip install -U "jax[cuda13]"; old card: cuda12 | docs.jax.dev/en/latest/installation
package torch | this PyTorch has no CUDA code: {}
pip uninstall torch; then the line for your CUDA | pytorch.org/get-started/locally
package XPU | an Intel GPU, and this PyTorch is no XPU build: {}
--force-reinstall the XPU build | docs.pytorch.org/docs/stable/notes/get_start_xpu.html
package Intel | an Intel GPU, which {} does not reach
KERAS_BACKEND=torch | docs.pytorch.org/docs/stable/notes/get_start_xpu.html
platform | {}
unset the variable | jax-ml/jax#25315
LD_LIBRARY_PATH | LD_LIBRARY_PATH puts {} before the package's own
unset LD_LIBRARY_PATH | jax-ml/jax#29843
libraries | CUDA's libraries: {}
install it again, with its libraries | docs.jax.dev/en/latest/installation.html
age | the card is too old: {}
cuda12, an older release, or another card | mudler/LocalAI#9948
small | TensorFlow ignores a card with few multiprocessors
TF_MIN_GPU_MULTIPROCESSOR_COUNT=1 | tensorflow/tensorflow#32489
versions | the driver is too old: {}
install a newer driver, or an older package | docs.nvidia.com/deploy/cuda-compatibility
code | no code for this card: {}
another build, or another engine | developer.nvidia.com/cuda-gpus
PTX | only PTX for this card: {}
a newer driver if it is the older one; or another build | tensorflow/tensorflow#89272
cuDNN | cuDNN does not fit: {}
upgrade it; unset LD_LIBRARY_PATH | tensorflow/tensorflow#60913
memory | the card is full: {}
end what holds it: another notebook? | docs.jax.dev/en/latest/gpu_memory_allocation.html
XLA | only what XLA compiles fails: {}
another build; until then jit_compile=False | tensorflow/tensorflow#111958
run | {}
search for this message | tensorflow/tensorflow#62994
Keras | {}
pip install -U keras, and what the message names | keras.io/getting_started
backend | {}
set KERAS_BACKEND before Keras is imported | keras.io/getting_started
"""
ANSWERS = {}  # link and case: (cause, fix, source)
for first, second in zip(*[iter(TABLE.splitlines())] * 2):
    (case, cause), (fix, source) = first.split(" | "), second.split(" | ")
    source = re.sub("#(.+)", r"/issues/\1", "github.com/" * ("#" in source) + source)
    ANSWERS[case] = (cause, fix, "https://" + source)
MESSAGES = {  # what an engine says, and the link that it means
    "Ignoring visible gpu device.*multiproc": "small",
    "(?i)out of memory|RESOURCE_EXHAUSTED|cublas handle|No reference output": "memory",
    "Unable to load|Outdated|Cannot dlopen|nvJitLink|undefined symbol": "libraries",
    "CuDNN library needs|Loaded runtime CuDNN": "cuDNN",
    "driver version is insufficient": "versions",
    "no kernel image": "code",
}
NOTHING = {"system": "Linux", "arch": "x86_64", "container": "", "variables": {}}
NOTHING |= {"smi": "", "cards": [], "driver": None, "status": 0, "count": 0, "own": ""}
NOTHING |= {"nvidia": 0, "visible": 0, "capability": (), "intel": 0, "intel_link": ""}
NOTHING |= {"version": "", "cuda": None, "xpu": None, "targets": [], "gpus": []}
NOTHING |= {"engine": "", "run": {}, "problem": "", "log": "", "device": ""}
MASKS = ("ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR")
VARIABLES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")
VARIABLES += ("JAX_PLATFORMS", "JAX_PLATFORM_NAME", "TF_MIN_GPU_MULTIPROCESSOR_COUNT")
VARIABLES += (*MASKS, "KERAS_BACKEND", "KERAS_HOME", "KERAS_TORCH_DEVICE")


def code_for(capability, targets):
    """How code built for targets such as "sm_80" or "compute_90" reaches a card.

    The card has a compute capability such as (8, 9); the rule is that of the CUDA
    programming guide. Gives "machine code", "compiled from PTX" or "none".
    """
    way = "none"
    for target in targets:
        kind, number, only = re.fullmatch(r"(sm|compute)_(\d+)(\D?)", target).groups()
        built = int(number[:-1]), int(number[-1])
        newer = only != "a" and capability > built
        if capability == built or (newer and capability[0] == built[0]):
            return "machine code"
        if newer and kind == "compute":
            way = "compiled from PTX"
    return way


def works(m):
    """Whether an engine lists a GPU, and all work there gave the right numbers."""
    there = [why for name, why in m["run"].items() if name.split()[0] in m["gpus"]]
    return bool(there) and not any(there)


def judge_machine(m):
    """The broken links that all engines share, as (case, detail), in their order."""
    m = {**NOTHING, **m}
    place = m["container"] or ("Mac" if m["system"] == "Darwin" else "none")
    if not m["nvidia"] and (place in ("Colab", "WSL2") or not m["intel"]):
        yield f"card {place}", ""
    elif "mismatch" in m["smi"] or m["status"] == 803:
        yield "driver mismatch", ""
    elif m["nvidia"] and m["driver"] is None:
        yield ("driver libcuda" if m["cards"] else "driver none"), ""
    elif m["status"]:
        yield "driver fails", f"{m['status']} {m['smi']}"
    if m["visible"] < m["count"]:
        value = m["variables"].get("CUDA_VISIBLE_DEVICES")
        shown = (
            f"CUDA_VISIBLE_DEVICES={value} shows {m['visible']} of {m['count']} cards"
        )
        yield "visible", shown
    if m["intel_link"] and m["intel"] and not m["nvidia"]:
        yield m["intel_link"], ""
    for name, used, total in m["cards"]:
        if (used + total).isdigit() and int(used) > 0.9 * int(total):
            yield "memory", f"{used} of {total} MiB of the {name} are in use"
    if m["own"]:
        yield "LD_LIBRARY_PATH", m["own"]


def judge(m):
    """The broken links between one engine and a GPU, as (case, detail)."""
    m = {**NOTHING, **m}
    engine, problem = m["engine"], m["problem"]
    if "Ignoring visible gpu device" in m["log"]:
        yield "small", ""
    for name in MASKS if m["xpu"] else ():
        if name in m["variables"]:
            shown = f"{name}={m['variables'][name]} shows PyTorch {len(m['gpus'])}"
            yield "visible", f"{shown} of the Intel GPUs"
    for name in ("JAX_PLATFORMS", "JAX_PLATFORM_NAME") if engine == "jax" else ():
        value = m["variables"].get(name, "")
        if value and (problem or (value.startswith("cpu") and m["nvidia"])):
            why = f"no such platform is here: {problem}" if problem else "CPU first"
            yield "platform", f"{name}={value}: {why}"
            problem = ""
    if problem and not m["version"]:
        yield "package broken", problem
    elif works(m):
        return
    elif m["nvidia"] and not m["cuda"] and engine != "openvino":
        case, about = f"package {engine}", problem or "it is not installed"
        if m["system"] == "Windows" and engine != "torch":
            case, about = "package Windows", engine
        elif engine == "tensorflow" and m["arch"] in ("aarch64", "arm64"):
            case = "package Arm"
        yield case, m["version"] if engine == "torch" else about
    elif m["nvidia"] and m["cuda"]:
        hidden = m["visible"] == 0 < m["count"]
        if m["driver"] and not m["status"] and not hidden:
            yield from judge_cuda(m, problem)
    elif m["intel"] and engine in ("tensorflow", "jax"):
        yield "package Intel", engine
    elif m["intel"] and engine == "torch" and m["xpu"] is None:
        yield "package XPU", m["version"]
    elif m["intel"] and not m["nvidia"] and not m["gpus"] and not m["intel_link"]:
        yield "compute", engine
    elif problem or any(m["run"].values()):
        yield "run", problem or next(filter(None, m["run"].values()))


def judge_cuda(m, problem):
    """The first broken link of a package with CUDA code beside an NVIDIA card."""
    card, driver, cuda = m["capability"], m["driver"], m["cuda"]
    failed = {name: why for name, why in m["run"].items() if why}
    name, why = next(iter(failed.items()), ("", problem))
    way = code_for(card, m["targets"]) if card and m["targets"] else "machine code"
    least = {"tensorflow": (3, 5), "jax": (7, 5) if cuda[0] > 12 else (5, 2)}
    least = least.get(m["engine"], (0, 0))
    said = [case for pattern, case in MESSAGES.items() if re.search(pattern, why)]
    older = "the driver knows CUDA {}.{}, the package is built with {}.{}"
    older = older.format(*driver, *cuda) if driver and driver < cuda else ""
    if card and card < least:
        yield "age", "{}.{}, and the least is {}.{}".format(*card, *least)
    elif older and driver[0] < cuda[0]:
        yield "versions", older
    elif way == "none":
        yield "code", "its capability is {}.{}".format(*card)
    elif way != "machine code" and (older or failed):
        yield "PTX", older or why
    elif said:
        yield said[0], why
    elif failed and all(name.endswith("XLA") for name in failed):
        yield "XLA", why
    elif failed or not m["gpus"]:
        yield "run", f"{name} {why}".strip() or "no GPU is listed, without a message"


def judge_keras(keras, engines):
    """The broken links between Keras and its backend, given the engines' evidence."""
    takes = f"Keras takes {keras['backend']} because {keras['why']}"
    reach = [name for name, m in engines.items() if works(m)]
    missing = keras["backend"] in ENGINES and not installed(keras["backend"])
    missing = missing or f"No module named '{keras['backend']}'" in keras["problem"]
    if not keras["version"] and not keras["problem"]:
        yield "Keras", f"Keras is not installed in {sys.executable}"
    elif missing or "Unable to import backend" in keras["problem"]:
        yield "backend", f"{takes}, and it is not installed"
    elif keras["problem"] and not engines.get(keras["backend"], NOTHING)["problem"]:
        yield "Keras", f"{takes}, and fails: {keras['problem']}"
    elif reach and keras["backend"] not in reach:
        yield "backend", f"{takes}; the GPU is reached by {' and '.join(reach)}"
    elif reach and keras["device"].lower().startswith("cpu"):
        yield "visible", f"{takes}, and computes on the CPU: KERAS_TORCH_DEVICE?"


def shell(*command):
    """What a program prints; nothing if it is missing, cannot start, or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout + done.stderr).decode(errors="replace")


def makers():
    """The PCI numbers of the makers of this system's graphics devices."""
    if os.name == "nt":
        ask = "(Get-CimInstance Win32_VideoController).PNPDeviceID"
        return re.findall(r"VEN_(\w{4})", shell("powershell", "-NoProfile", "-c", ask))
    found = []
    for kind in Path("/sys/bus/pci/devices").glob("*/class"):
        if kind.read_text().startswith("0x03"):  # display controllers
            found.append((kind.parent / "vendor").read_text().strip()[2:].upper())
    return found


def ask_nvidia_smi():
    """The cards of nvidia-smi (name, MiB in use, MiB in all), and else what it says."""
    program = shutil.which("nvidia-smi") or "/usr/lib/wsl/lib/nvidia-smi"
    query = "--query-gpu=name,memory.used,memory.total"
    said = shell(program, query, "--format=csv,noheader,nounits").strip()
    table = r"\|\s+\d+\s+(\S.*?)\s{2,}.*\n.*?(\d+)MiB\s*/\s*(\d+)MiB"
    patterns = r"(?m)^(.+?), *(\S+), *(\S+?)\r?$", table, r"GPU \d+: (.+?) \(()()"
    cards = next(filter(None, (re.findall(x, said) for x in patterns)), [])
    return cards, "" if cards else " ".join(said.split())[:120]


def probe_driver():
    """Ask libcuda: status (0 is healthy), CUDA, cards, capability of the first."""
    cuda = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    number, said = ctypes.c_int(), [cuda.cuInit(0)]
    for function in cuda.cuDriverGetVersion, cuda.cuDeviceGetCount:
        number.value = 0
        function(ctypes.byref(number))
        said.append(number.value)
    for attribute in (75, 76) if said[2] else ():
        cuda.cuDeviceGetAttribute(ctypes.byref(number), attribute, 0)
        said.append(number.value)
    tell(said=said)


def shown_of(count, value):
    """How many cards CUDA shows: it stops reading at the first number that is none."""
    parts = [part.strip() for part in value.split(",")]
    valid = [
        x[:4] in ("GPU-", "MIG-") or (x.isdigit() and int(x) < count) for x in parts
    ]
    return [*valid, False].index(False)


def nvidia():
    """The evidence on NVIDIA's cards and their driver."""
    cards, said = ask_nvidia_smi()
    every = child("driver", CUDA_VISIBLE_DEVICES=None).get("said")
    status, version, count, *capability = every or [0, 0, len(cards)]
    seen = child("driver").get("said") or []
    value = os.environ.get("CUDA_VISIBLE_DEVICES")
    shown = count if value is None else shown_of(count, value)
    there = len(cards) or count or makers().count("10DE")
    there = there or len(list(Path("/dev").glob("nvidia[0-9]")))
    return {
        "nvidia": there or int("NVML" in said or "NVIDIA driver" in said),
        "cards": cards,
        "smi": said,
        "status": status,
        "driver": (version // 1000, version % 1000 // 10) if every else None,
        "count": count,
        "visible": seen[2] if seen else shown,
        "capability": tuple(seen[3:] or capability),
    }


def intel():
    """The evidence on Intel's GPUs: how many, and the first broken link or ""."""
    drm = Path("/sys/class/drm").glob("renderD*/device/vendor")
    names = [x.parts[4] for x in drm if "0x8086" in x.read_text()]
    files = [x for x in (Path("/dev/dri", name) for name in names) if x.exists()]
    link = "" if any(os.access(x, os.R_OK | os.W_OK) for x in files) else "permission"
    link = "kernel" if not names else "file" if not files else link
    windows = os.name == "nt" or Path("/dev/dxg").exists()
    there = makers().count("8086") or len(names) or int(Path("/dev/dxg").exists())
    return {"intel": there, "intel_link": "" if windows else link}


def this_machine():
    """The evidence that all engines share."""
    marks = "/.dockerenv", "/run/.containerenv", "/run/secrets/kubernetes.io"
    place = "container" if any(Path(x).exists() for x in marks) else ""
    place = place or "WSL2" * ("microsoft" in platform.release().lower())
    place = "Colab" if {"COLAB_RELEASE_TAG", "COLAB_GPU"} & {*os.environ} else place
    own = []
    for folder in filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")):
        for name in ("nvJitLink", "cusparse", "cudart", "cublas", "cudnn"):
            own += map(str, Path(folder).glob(f"lib{name}.so*"))
    return {
        "system": platform.system(),
        "arch": platform.machine().lower(),
        "container": place,
        "variables": {x: os.environ[x] for x in VARIABLES if x in os.environ},
        "own": own[0] if own else "",
        **nvidia(),
        **intel(),
    }


def tell(**facts):
    """Send facts to the process that asked."""
    print("FACTS", json.dumps(facts), flush=True)


def attempt(device, context, ones, convolve, compiled=None):
    """Do up to three pieces of work on a device, and say whether each is right."""
    work = {"product": ("64.0", lambda: ones([64, 64]) @ ones([64, 64]))}
    work["convolution"] = "36.0", convolve
    work |= {"XLA": ("3.0", lambda: compiled(ones([64, 64])))} if compiled else {}
    for what, (right, job) in work.items():
        tell(trying=f"{device} {what}")
        try:
            with context:
                got = job()
            got = got.tolist() if hasattr(got, "tolist") else got.numpy().tolist()
            got = sorted(set(re.findall(r"[^\s,\[\]]+", str(got))))
            why = "" if got == [right] else f"wrong numbers: {got[:2]}"
        except Exception as error:
            why = (str(error).strip().splitlines() or [repr(error)])[0][:120]
        tell(tried=f"{device} {what}", why=why)


def pair(version):
    """The first two numbers of a version, such as (12, 5) of "12.5.1", or None."""
    numbers = re.findall(r"\d+", version or "")[:2]
    return tuple(map(int, numbers)) if len(numbers) == 2 else None


def probe_tensorflow():
    """TensorFlow's version, its CUDA and targets, its devices and their work."""
    import tensorflow as tf

    build, conv2d = tf.sysconfig.get_build_info(), tf.nn.conv2d
    targets = build.get("cuda_compute_capabilities", [])
    tell(version=tf.__version__, cuda=pair(build.get("cuda_version")), targets=targets)
    names = [x.name[17:] for x in tf.config.list_physical_devices()]
    tell(gpus=[x for x in names if x.startswith("GPU")])
    ones, image, window = tf.ones, [1, 8, 8, 4], [3, 3, 4, 4]
    jit = tf.function(lambda x: x * 2 + 1, jit_compile=True)
    for name in names:
        convolve = lambda: conv2d(ones(image), ones(window), 1, "VALID")  # noqa: E731
        attempt(name, tf.device(name), ones, convolve, jit)


def probe_jax():
    """JAX's version, its plug-in for CUDA, its devices and their work."""
    import jax

    plugins = {}
    for found in metadata.distributions():
        if re.fullmatch(r"jax[-_]cuda\d+[-_]plugin", found.metadata["Name"] or ""):
            plugins[re.search(r"\d+", found.metadata["Name"])[0]] = found.version
    fits = [n for n, v in plugins.items() if v == metadata.version("jaxlib")]
    other = " and ".join(f"cuda{n} {v}" for n, v in plugins.items())
    tell(version=jax.__version__, cuda=[int(fits[0]), 0] if fits else None)
    tell(
        problem=f"{other} does not fit {jax.__version__}" if other and not fits else ""
    )
    devices = {str(x): x for x in jax.devices()}
    with contextlib.suppress(RuntimeError):  # JAX_PLATFORMS may exclude the CPU
        devices |= {str(x): x for x in jax.devices("cpu")}
    tell(gpus=[name for name, x in devices.items() if x.platform == "gpu"])
    ones, conv, jit = jax.numpy.ones, jax.lax.conv, jax.jit(lambda x: x * 2 + 1)
    image, window, steps = [1, 4, 8, 8], [4, 4, 3, 3], (1, 1)
    for name, device in devices.items():
        convolve = lambda: conv(ones(image), ones(window), steps, "VALID")  # noqa: E731
        attempt(name, jax.default_device(device), ones, convolve, jit)


def probe_torch():
    """PyTorch's version, its CUDA or XPU and targets, its devices and their work."""
    import torch

    xpu = getattr(torch.version, "xpu", None)
    tell(version=torch.__version__, cuda=pair(torch.version.cuda), xpu=xpu)
    tell(targets=[x for x in torch.cuda.get_arch_list() if not x.startswith("gfx")])
    gpus = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    gpus += [f"xpu:{i}" for i in range(torch.xpu.device_count())] if xpu else []
    gpus += ["mps"] if torch.backends.mps.is_available() else []
    tell(gpus=gpus)
    ones, conv2d = torch.ones, torch.nn.functional.conv2d
    for name in [*gpus, "cpu"]:
        convolve = lambda: conv2d(ones([1, 4, 8, 8]), ones([4, 4, 3, 3]))  # noqa: E731
        attempt(name, torch.device(name), ones, convolve)


def probe_openvino():
    """OpenVINO's version and devices, and a product on each."""
    import numpy as np
    import openvino
    from openvino import opset13 as ops

    core, ones = openvino.Core(), np.ones([64, 64], np.float32)
    names = core.available_devices
    tell(version=openvino.__version__.split("-")[0])
    tell(gpus=[x for x in names if x.startswith("GPU")])
    given = ops.parameter([64, 64], np.float32)
    model = openvino.Model([ops.matmul(given, given, False, False)], [given])
    for name in names:
        tell(trying=f"{name} product")
        right = (core.compile_model(model, name)([ones])[0] == 64).all()
        tell(tried=f"{name} product", why="" if right else "wrong numbers")


def probe_keras():
    """Keras's version, and the device on which it multiplies."""
    import keras

    tell(version=keras.__version__)
    ones = keras.ops.ones((64, 64))
    device = str(getattr(keras.ops.matmul(ones, ones), "device", "its own choice"))
    tell(device=device.split("device:")[-1])


def child(name, limit=300, **variables):
    """The facts that a probe tells in a process with these variables (None: unset)."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
    quiet |= {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", **variables}
    given = {k: v for k, v in {**os.environ, **quiet}.items() if v is not None}
    command = [sys.executable, __file__, "--child", name]
    try:
        done = subprocess.run(command, env=given, capture_output=True, timeout=limit)
        end = done.returncode
    except subprocess.TimeoutExpired as late:
        done, end = late, f"no result after {limit} s"
    out, log = ((x or b"").decode(errors="replace") for x in (done.stdout, done.stderr))
    facts = {"log": log, "run": {}}
    for line in out.splitlines():
        if line.startswith("FACTS "):
            told = json.loads(line[6:])
            facts["run"] |= {told["tried"]: told["why"]} if "tried" in told else {}
            facts |= told
    if end:
        errors = re.findall(r"(?m)^[\w.]*(?:Error|Exception)\b.*", log)
        if isinstance(end, int):
            end = signal.Signals(-end).name if end < 0 else f"exit status {end}"
        facts["problem"] = [f"{name} ends its process: {end}", *errors][-1][:160]
        if facts.get("trying") not in (None, *facts["run"]):
            facts["run"][facts["trying"]] = facts["problem"]
    return facts


def installed(package):
    """Whether Python finds a package."""
    try:
        return util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def examine(engine, machine, limit=300):
    """All evidence about one engine on this machine."""
    m = {**NOTHING, **machine, "engine": engine, **child(engine, limit)}
    m["cuda"] = tuple(m["cuda"]) if m["cuda"] else None
    place = getattr(util.find_spec(engine), "origin", None) or "a folder of that name"
    if m["problem"] and "-packages" not in place:
        m["problem"] += f" (imported from {place})"
    lines = [line.split("] ")[-1] for line in m["log"].splitlines()]
    known = [x for x in lines if any(re.search(y, x) for y in MESSAGES)]
    about = known or [x for x in lines if re.search("(?i)cuda|gpu", x)]
    if about and m["nvidia"] and not m["gpus"] and not m["problem"]:
        m["problem"] = about[-1][:160]
    return m


def examine_keras(limit=300):
    """Keras's version, its backend and why it was chosen, and where it computes."""
    home = Path.home() if os.access(Path.home(), os.W_OK) else Path("/tmp")
    home = Path(os.environ.get("KERAS_HOME", home / ".keras"))
    file = home.expanduser() / "keras.json"
    try:
        backend, why = json.loads(file.read_text())["backend"], f"{file} names it"
    except (OSError, ValueError, KeyError):
        backend, why = "tensorflow", "nothing else is set"
    if os.environ.get("KERAS_BACKEND"):
        backend, why = os.environ["KERAS_BACKEND"], "the variable KERAS_BACKEND is set"
    facts = {**NOTHING, "backend": backend, "why": why}
    with tempfile.TemporaryDirectory() as empty:  # Keras would write its file
        place = {} if file.exists() else {"KERAS_HOME": empty}
        return {
            **facts,
            **(child("keras", limit, **place) if installed("keras") else {}),
        }


def examine_all(names=ENGINES):
    """The evidence on this machine, its engines and Keras, as three dictionaries."""
    machine, there = this_machine(), [name for name in names if installed(name)]
    with ThreadPoolExecutor(2) as pool:
        keras = pool.submit(examine_keras)
        found = pool.map(lambda name: examine(name, machine), there)
        engines = dict(zip(there, found))
    gone = [x for x, m in engines.items() if f"No module named '{x}'" in m["problem"]]
    return machine, {x: m for x, m in engines.items() if x not in gone}, keras.result()


def judge_all(machine, engines, keras):
    """All broken links, as (case, detail, the engine that they concern, or "")."""
    found = [(*link, "") for link in judge_machine(machine)]
    if any(map(works, engines.values())):
        found = [x for x in found if x[0].split()[0] not in ("card", "LD_LIBRARY_PATH")]
    if not engines:
        found.append(("package none", sys.executable, ""))
    for name, m in engines.items():
        found += [(*link, name) for link in judge(m)]
    return [*found, *[(*link, "") for link in judge_keras(keras, engines)]]


def explain(case, detail, who=""):
    """A broken link, with its cause, fix and source, as text."""
    cause, fix, source = ANSWERS[case]
    text = f"PROBLEM {case.split()[0]}{who and f' ({who})'}: {cause.format(detail)}"
    lines = textwrap.wrap(text, 79, subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join([*lines, f"    fix: {fix}", f"    source: {source}"])


def report(machine, engines, keras):
    """The whole report, as text."""
    m, k = machine, keras
    cards = [
        f"{name}, {used} of {total} MiB in use" for name, used, total in m["cards"]
    ]
    driver = "CUDA {}.{}".format(*m["driver"]) if m["driver"] else "none"
    place = f"{m['system']} {m['arch']} {m['container']}".strip()
    lines = [f"machine: {place}, Python {platform.python_version()}, {sys.executable}"]
    lines += [
        f"NVIDIA: {int(m['nvidia'])} card(s), driver: {driver} {m['smi']}".strip(),
        *cards,
    ]
    lines += [f"Intel: {int(m['intel'])} GPU(s)"]
    lines += [f"variable: {name}={value}" for name, value in m["variables"].items()]
    for e in engines.values():
        cuda = "CUDA {}.{}".format(*e["cuda"]) if e["cuda"] else "no CUDA"
        built = f"XPU {e['xpu']}" if e["xpu"] else cuda
        lines.append(f"{e['engine']} {e['version'] or '(does not start)'} ({built})")
        work = {}
        for name, why in e["run"].items():
            device, what = name.rsplit(" ", 1)
            work.setdefault(device, []).append(f"{what} {'FAILS' if why else 'ok'}")
        lines += [f"    {device}: {', '.join(did)}" for device, did in work.items()]
    state = k["version"] or ("does not start;" if k["problem"] else "is not installed;")
    lines.append(f"Keras {state} takes {k['backend']}: {k['why']}")
    lines[-1] += f"; it computes on {k['device']}" if k["device"] else ""
    found = judge_all(machine, engines, keras)
    end = "\n".join(explain(*link) for link in found)
    return "\n".join(lines) + "\n\n" + (end or "Nothing is broken: Keras uses the GPU.")


def main(names):
    """Print the report; SystemExit if a name is no engine."""
    unknown = [name for name in names if name not in ENGINES]
    if unknown:
        sys.exit(f"diagnose.py does not know {unknown[0]}. Use: {', '.join(ENGINES)}.")
    print(report(*examine_all(names or ENGINES)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        globals()["probe_" + sys.argv[2]]()
    else:
        main(sys.argv[1:])
