"""Time all-reduces between the hosts: print L, W and what they predict; PyTorch.

Run `bash start_torch.sh 0 10.0.0.1 eth0 links.py`, and so on the second host. In a
job, write `../links.py` in place of `../torch_worker.py` into `train.sbatch`, and `#`
before its last line, which wants a checkpoint.
"""

import os
import statistics
import time

import torch
import torch.distributed as dist

GPU = torch.cuda.is_available()
device = f"cuda:{os.environ['LOCAL_RANK']}" if GPU else "cpu"
if GPU:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if GPU else "gloo")
world, seconds = dist.get_world_size(), []
some, many = (64e6, 256e6) if GPU else (4e6, 16e6)  # bytes
for size in (4, int(some), int(many)):
    numbers, times = torch.zeros(size // 4, device=device), []
    for _ in range(12):
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(numbers)
        numbers[0].item()  # wait for the device
        times.append(time.perf_counter() - start)
    seconds.append(statistics.median(times[2:]))
dist.destroy_process_group()

tiny, middle, large = seconds
L = tiny / (2 * (world - 1))
W = 2 * (world - 1) / world * many / (large - tiny)
predicted = 2 * (world - 1) / world * some / W + tiny
if os.environ["RANK"] == "0":
    print(f"L = {L * 1e6:.0f} µs, W = {W / 1e9:.2f} GB/s")
    size = f"{some / 1e6:.0f} MB"
    print(f"{size}: {middle * 1e3:.1f} ms, by the formula {predicted * 1e3:.1f} ms")
