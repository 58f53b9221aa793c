# The digits of digits-torch as a search: which batch size, learning rate and width read them best, and how
# many cores a trial needs. Each trial is a job like this file's.
#
#   pitchpipe search preview jobspecs/nomad/digits-search.nomad.hcl
#   pitchpipe search run jobspecs/nomad/digits-search.nomad.hcl --wait --dir /var/tmp
#   pitchpipe search best
#
# The trials keep their checkpoints below --dir, which each node has to see. Needs python3-torch and
# python3-sklearn, and the task driver raw_exec or exec.
#
# For a job of your own, change:
#   config                to your program. It reads what a trial is to use from its environment, and keeps its
#                         checkpoint in the folder that PITCHPIPE_TRIAL_DIR names (see CHECKPOINT.md)
#   search                to how many trials you can pay for, and how many may run at one time. epochs is what a
#                         whole trial runs; most end earlier, at a rung
#   knobs with env        to what your program can be told, and the values worth trying
#   knob "cores"          to the numbers of cores worth trying: a trial is given others between two of its epochs
#   quality               to direction = "min" where less is better

variable "epochs" {
  type        = number
  default     = 18
  description = "epochs of a whole trial"
}

variable "seed" {
  type        = number
  default     = 1
  description = "seed of everything random"
}

variable "script" {
  type        = string
  default     = "/usr/local/share/pitchpipe/digits.py"
  description = "path of digits.py"
}

variable "state_dir" {
  type        = string
  default     = "/var/tmp"
  description = "where a finished trial leaves its mark, so that it is not done again"
}

job "digits-search" {
  type = "batch"

  group "work" {
    tuning {
      mode      = "apply"
      objective = "time"

      search {
        trials     = 18
        parallel   = 2
        epochs     = 18
        min_epochs = 2
        seed       = 1
      }

      knob "batch_size" {
        env    = "BATCH_SIZE"
        values = [16, 32, 64, 128]
      }
      knob "learning_rate" {
        env   = "LEARNING_RATE"
        min   = 0.0001
        max   = 0.03
        scale = "log"
      }
      knob "width" {
        env    = "WIDTH"
        values = [8, 16, 32]
      }
      knob "cores" {
        values = [1, 2]
      }
      knob "threads" {
        env     = "OMP_NUM_THREADS"
        follows = "cores"
      }

      progress {
        pattern = "epoch (?P<epoch>\\d+)/(?P<total>\\d+) loss (?P<loss>\\S+) acc (?P<quality>\\S+)"
      }
      quality {
        direction = "max"
      }
      profile {
        warmup_epochs = 1
        epochs        = 3
      }
      checkpoint {
        signal = "SIGUSR1"
        grace  = "30s"
        exit   = 85
      }
      budget {
        restarts = 2
        probes   = 2
      }
    }

    task "digits" {
      driver = "raw_exec"

      config {
        command = "/usr/bin/python3"
        args    = ["${var.script}", "--epochs", "${var.epochs}", "--seed", "${var.seed}"]
      }

      env {
        OMP_NUM_THREADS = "1"
        PITCHPIPE_MARKS = var.state_dir
      }

      resources {
        cores  = 1
        memory = 2048
      }

      kill_signal  = "SIGTERM"
      kill_timeout = "30s"
    }
  }
}
