#!/bin/bash
# One set by the GPUs of several nodes: a Ray cluster that lives as long as the job.
#
#   sbatch slurm_ray.sh gaze 1000000000
#
# The folder must be on a file system that all nodes share. The same command resumes.
#SBATCH --job-name=gaze-ray
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=32
#SBATCH --time=24:00:00
set -euo pipefail
folder=$1
n=$2
export RAY_USAGE_STATS_ENABLED=0

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
first=${nodes[0]}
address="$first:6379"
srun --nodes=1 --ntasks=1 --nodelist="$first" --overlap \
    ray start --head --port=6379 --num-gpus=8 --num-cpus=32 --block &
for _ in {1..60}; do
    ray status --address "$address" > /dev/null 2>&1 && break
    sleep 2
done
others=$((SLURM_NNODES - 1))
if ((others > 0)); then
    srun --nodes="$others" --ntasks="$others" --exclude="$first" --overlap \
        ray start --address="$address" --num-gpus=8 --num-cpus=32 --block &
fi
srun --nodes=1 --ntasks=1 --nodelist="$first" --overlap \
    gazediffusion generate -n "$n" --engine ray --set address="$address" --device cuda \
    --set part_size=10240 --batch-size 1024 --set precision=bf16 -o "$folder"
