# The digits of digits-torch as a batch that is dispatched, once for each input:
#
#   pitchpipe run jobspecs/nomad/digits-batch.nomad.hcl
#   nomad job dispatch -meta input=1 digits-batch
#
# Nomad lets no one change a job that was dispatched. So each of them is measured and says in `pitchpipe
# explain` and `pitchpipe report` what would have been better, and nothing more: write that into resources
# and env of this file and submit it again, and later dispatches follow. Nothing that runs is touched then:
# a parameterized job has no allocations of its own.
#
# For a job of your own, change:
#   parameterized         to what each dispatch has to say
#   config, env           to your program and what it needs
#   knob "cores"          to the numbers of cores that you want advice on
#   progress              to the line that your program prints after each epoch or time step
# There is no checkpoint block: without one nothing would be done to a running job anyway.

variable "script" {
  type        = string
  default     = "/usr/local/share/pitchpipe/digits.py"
  description = "path of digits.py"
}

variable "epochs" {
  type        = number
  default     = 40
  description = "epochs in all"
}

job "digits-batch" {
  type = "batch"

  parameterized {
    payload       = "forbidden"
    meta_required = ["input"]
  }

  group "work" {
    tuning {
      mode      = "recommend"
      objective = "time"

      knob "cores" {
        values = [1, 2]
      }
      knob "threads" {
        env     = "OMP_NUM_THREADS"
        follows = "cores"
      }
      knob "memory" {
        min = "512MiB"
        max = "8GiB"
      }

      progress {
        pattern = "epoch (?P<epoch>\\d+)/(?P<total>\\d+) loss (?P<loss>\\S+) acc (?P<quality>\\S+)"
      }
    }

    task "digits" {
      driver = "raw_exec"

      config {
        command = "/usr/bin/python3"
        args    = ["${var.script}", "--epochs", "${var.epochs}", "--input", "${NOMAD_META_input}"]
      }

      env {
        OMP_NUM_THREADS = "1"
        BATCH_SIZE      = "32"
      }

      resources {
        cores  = 1
        memory = 2048
      }
    }
  }
}
