export EXPECTED_WORLD=2  # how many workers there are, for a check
export GLOO_SOCKET_IFNAME="$3" NCCL_SOCKET_IFNAME="=$3"  # such as eth0
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1  # the section on PyTorch says why
torchrun --nnodes=2 --nproc-per-node=1 --rdzv-backend=c10d --rdzv-id=book \
    --rdzv-endpoint=10.0.0.1:29400 --rdzv-conf="is_host=$(($1 == 0))" \
    --local-addr="$2" --max-restarts=3 "${4:-two_torch.py}"
