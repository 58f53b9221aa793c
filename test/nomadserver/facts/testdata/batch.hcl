variable "lr" {
  type    = number
  default = 0.1
}
variable "list" {
  type    = list(string)
  default = []
}
job "train" {
  type = "batch"
  datacenters = ["dc1"]
  priority    = 70
  namespace   = "other"
  node_pool   = "pool"
  constraint {
    attribute = "${attr.kernel.name}"
    value     = "linux"
  }
  constraint {
    attribute = "${node.class}"
    operator  = "!="
    value     = "a"
  }
  meta {
    key = "value-${upper("x")}-${join(",", var.list)}"
    n   = 3
  }
  parameterized {
    payload       = "optional"
    meta_required = ["in"]
    meta_optional = ["out"]
  }
  reschedule {
    attempts  = 0
    unlimited = false
  }
  group "g" {
    count = 2
    shutdown_delay = "3s"
    meta = { "dotted.key" = "x", tuning = jsonencode({ mode = "apply", knob = { cores = { values = [1, 2] } } }) }
    restart {
      attempts = 3
      delay    = "1s"
      interval = "10m"
      mode     = "fail"
    }
    ephemeral_disk {
      size    = 300
      sticky  = true
      migrate = true
    }
    scaling {
      enabled = false
      min     = 1
      max     = 2
      policy {
        cooldown = "1m"
        tuning {
          mode = "apply"
          knob "cores" {
            values = [1, 2, 4]
          }
          knob "threads" {
            env     = "OMP_NUM_THREADS"
            follows = "cores"
          }
          deep "a" "b" {
            x = { y = 1.5 }
          }
          flag  = true
          maps  = [{ a = 1 }, { b = 2 }]
          empty = {}
          none  = null
        }
      }
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
        args    = ["--lr", "${var.lr}", "${NOMAD_TASK_DIR}/x", "${env["HOME"]}", "${attr.cpu.arch}", "${meta.key}", format("%s!", "${NOMAD_META_key}"), node.unique.name]
        nested {
          a = 1
          inner "label" {
            b = "${NOMAD_ALLOC_ID}"
          }
        }
        object = { k = "v" }
      }
      kill_signal  = "SIGTERM"
      kill_timeout = "10s"
      leader       = true
      user         = "nobody"
      env {
        A = "1"
        B = var.lr
        C = true
        D = "${NOMAD_ALLOC_INDEX}"
      }
      meta {
        m = "t"
      }
      logs {
        max_files     = 2
        max_file_size = 5
      }
      dispatch_payload {
        file = "in.json"
      }
      identity {
        env  = true
        file = true
      }
      identity {
        name = "second"
        aud  = ["x"]
        ttl  = "1h"
      }
      template {
        data        = <<EOT
{{ with nomadVar "nomad/jobs/train" }}{{ range .Tuples }}{{ .K }}={{ .V }}
{{ end }}{{ end }}
EOT
        destination = "local/tuned.env"
        env         = true
        change_mode = "restart"
        splay       = "0s"
      }
      lifecycle {
        hook = "prestart"
      }
      resources {
        memory     = 64
        cores      = 2
        memory_max = 256
        device "nvidia/gpu" {
          count = 1
        }
      }
    }
  }
}
