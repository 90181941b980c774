#!/bin/bash
# Training on the GPUs of several nodes; the same command resumes a run.
#
#   sbatch slurm_train.sh windows.safetensors run
#
# Both paths must be on a file system that all nodes share.
#SBATCH --job-name=gaze-train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --time=12:00:00
#SBATCH --signal=TERM@120
set -euo pipefail
windows=$1
run=$2

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
first=${nodes[0]}
srun --kill-on-bad-exit=1 torchrun --nnodes "$SLURM_NNODES" --nproc-per-node 4 --max-restarts 3 \
    --rdzv-backend c10d --rdzv-endpoint "$first:29500" --rdzv-id "$SLURM_JOB_ID" \
    -m gazediffusion train "$windows" -o "$run" --recipe steerable
