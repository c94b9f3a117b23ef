"""TF_CONFIG from Slurm: the hosts in Slurm's order, as many tasks on each."""

import json
import os
import subprocess


def tf_config():
    """The text for this task; all make the same list."""
    command = ["scontrol", "show", "hostnames", os.environ["SLURM_STEP_NODELIST"]]
    hosts = subprocess.check_output(command, text=True).split()
    each = int(os.environ["SLURM_NTASKS"]) // len(hosts)
    first = 20000 + int(os.environ["SLURM_JOB_ID"]) % 10000  # a port for each task
    workers = [f"{host}:{first + n}" for host in hosts for n in range(each)]
    task = {"type": "worker", "index": int(os.environ["SLURM_PROCID"])}
    return json.dumps({"cluster": {"worker": workers}, "task": task})
