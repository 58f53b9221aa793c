# A program in Go whose settings are all variables of its environment: the example is test/workload,
# which trains a dense network. A change of them needs no new version of the job: they are written to the
# variable nomad/jobs/JOB/GROUP/TASK, and the template below restarts the task in place.
#
# For a job of your own, change:
#   config, env           to your program and what it needs. A Go program tells its threads by GOMAXPROCS, or by
#                         a variable of its own
#   knob "threads"        to that variable, and the numbers worth trying within resources.cores
#   knob "batch_size"     to a variable that your program reads, and what it can learn with. It changes only before a
#                         run starts, by what the runs that budget returns allows have shown. Leave it out, and
#                         quality and returns too, where there is none
#   progress              to the line that your program prints after each epoch or time step
#   checkpoint            to the signal that makes it save and the status that it then exits with
#   restart               to more attempts than there may be changes, with a delay above the wait of the template:
#                         a job that saves by leaving is started again by this policy, with what was written
#   template              to nothing else: it counts by its text. wait is how soon a change is rendered. What a
#                         knob is without a change belongs into env
#   folder                to a folder that the job finds again wherever it is restarted: one that all nodes see
#
# With "pitchpipe run" alone: it wraps the command so that finished work is not done again, without which the
# template is left alone. The controller needs rights to the variable (scripts/nomad), else it registers changes.
# A knob "cores" or "memory" may stand here too: a change of those is registered as ever.
#
# For short runs before the long one: pitchpipe run --probe 4 --probe-env EPOCHS=6 program-go.nomad.hcl

variable "input" {
  type        = number
  default     = 1
  description = "which input to work on"
}

variable "epochs" {
  type        = number
  default     = 60
  description = "epochs in all"
}

variable "folder" {
  type        = string
  default     = "/var/tmp"
  description = "where the checkpoint is kept"
}

variable "workload" {
  type        = string
  default     = "workload"
  description = "path of the program"
}

job "program-go" {
  type = "batch"

  group "work" {
    tuning {
      mode      = "apply"
      objective = "time"

      knob "threads" {
        env    = "THREADS"
        values = [1, 2]
      }
      knob "batch_size" {
        env    = "BATCH_SIZE"
        values = [8, 16, 32, 64]
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

    restart {
      attempts = 10
      interval = "24h"
      delay    = "5s"
      mode     = "fail"
    }

    task "program" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args = [
          "-c", "exec \"$0\" dense --epochs \"$EPOCHS\" --input ${var.input} --seed 1 --state \"$FOLDER/program-go-$NOMAD_JOB_ID-$EPOCHS.ckpt\"", var.workload,
        ]
      }

      env {
        THREADS         = "1"
        BATCH_SIZE      = "8"
        EPOCHS          = "${var.epochs}"
        FOLDER          = var.folder
        PITCHPIPE_MARKS = var.folder
      }

      template {
        data        = <<EOT
{{ $path := printf "nomad/jobs/%s/%s/%s" (or (env "NOMAD_JOB_PARENT_ID") (env "NOMAD_JOB_ID")) (env "NOMAD_GROUP_NAME") (env "NOMAD_TASK_NAME") }}
{{ if nomadVarExists $path }}{{ with nomadVar $path }}{{ if eq (print .PITCHPIPE_ALLOC) (env "NOMAD_ALLOC_ID") }}
{{ range .Tuples }}
{{ .K }}={{ .V }}
{{ end }}
{{ end }}{{ end }}{{ end }}
EOT
        destination = "local/tuned.env"
        env         = true
        change_mode = "restart"
        splay       = "0s"

        wait {
          min = "1s"
          max = "5s"
        }
      }

      resources {
        cores  = 2
        memory = 512
      }
    }
  }
}
