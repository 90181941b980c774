#!/bin/bash
# A job array: every task writes a set of its own seed on one GPU. No cluster software is needed.
#
#   sbatch --array=0-99 slurm_generate.sh gaze 1000000
#
# writes gaze/seed-0 to gaze/seed-99 of a million windows each. A task that is stopped or requeued
# resumes from the parts it has.
#SBATCH --job-name=gaze-generate
#SBATCH --ntasks=1
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
#SBATCH --requeue
set -euo pipefail
folder=$1
n=$2

mkdir -p "$folder"
srun gazediffusion generate -n "$n" --seed "$SLURM_ARRAY_TASK_ID" --engine local \
    --set part_size=10240 --batch-size 1024 -o "$folder/seed-$SLURM_ARRAY_TASK_ID"
