# A dense network, trained in mini-batches. Its user asked for one core although the work is parallel, for
# small batches that a quality guard watches, and for far too much memory.
#
# The program is test/workload; the variable workload says where it is.
#
# For a job of your own, change:
#   config, env           to your program and what it needs
#   knob "cores"          to the numbers of cores worth trying. A number above resources.cores is used only
#                         where the site's policy says above_request
#   knob "threads"        to the variable that tells your program its threads, such as OMP_NUM_THREADS
#   knob "batch_size"     to the batches that your program can learn with. A batch changes only before a run starts,
#                         by what whole runs of this kind of job have shown
#   budget returns        to how many runs may try another batch; without it the batch stays as it is
#   quality               to direction = "min" where less is better; max_loss is the share that may be lost
#   knob "memory"         to the least and the most that you would ever give it
#   progress              to the line that your program prints after each epoch or time step
#   checkpoint            to the signal that makes it save and the status that it then exits with; without
#                         this block nothing is done to a running job, only to the next one
#   state_dir             to a folder that the job finds again wherever it is restarted: one that all nodes
#                         see. PITCHPIPE_MARKS is where a finished run leaves its mark, so that it is not done
#                         again where a change meets its end
#
# "pitchpipe run" takes the file as it is, also for Nomad. Nomad itself refuses a tuning block: for "nomad job
# run" put it into the group's scaling { enabled = false  min = 1  max = 1  policy { tuning { ... } } }.

variable "input" {
  type        = number
  default     = 1
  description = "which input to work on"
}

variable "epochs" {
  type        = number
  default     = 40
  description = "epochs in all"
}

variable "seed" {
  type        = number
  default     = 1
  description = "seed of everything random"
}

variable "state_dir" {
  type        = string
  default     = "/var/tmp"
  description = "where the checkpoint is kept"
}

variable "workload" {
  type        = string
  default     = "workload"
  description = "path of the program"
}

job "dense" {
  type = "batch"

  group "work" {
    tuning {
      mode      = "apply"
      objective = "time"

      knob "cores" {
        values = [1, 2]
      }
      knob "threads" {
        env     = "THREADS"
        follows = "cores"
      }
      knob "batch_size" {
        env    = "BATCH_SIZE"
        values = [8, 16, 32, 64]
      }
      knob "memory" {
        min = "64MiB"
        max = "8GiB"
      }

      progress {
        pattern = "epoch (?P<epoch>\\d+)/(?P<total>\\d+) loss (?P<loss>\\S+) acc (?P<quality>\\S+)"
      }
      quality {
        direction = "max"
        max_loss  = 0.01
      }
      checkpoint {
        signal = "SIGUSR1"
        grace  = "20s"
        exit   = 85
      }
      budget {
        restarts = 3
        probes   = 4
        returns  = 6
      }
    }

    task "dense" {
      driver = "raw_exec"

      config {
        command = var.workload
        args = [
          "dense",
          "--epochs", "${var.epochs}",
          "--input", "${var.input}",
          "--seed", "${var.seed}",
          "--state", "${var.state_dir}/dense-${NOMAD_JOB_ID}-${var.input}.ckpt",
        ]
      }

      env {
        THREADS         = "1"
        BATCH_SIZE      = "8"
        PITCHPIPE_MARKS = var.state_dir
      }

      resources {
        cores  = 1
        memory = 8192
      }
    }
  }
}
