# pitchpipe-exporter on every node: it measures the tasks of Nomad and answers the controller.
#
#   nomad job run jobspecs/nomad/exporter.nomad.hcl
#
# It reads the cgroups and performance counters of other tasks, for which it has to be root on the node: raw_exec.
# Where the exporter is installed as a package its systemd unit does the same with fewer rights; this file is
# for clusters on which Nomad is what starts things.
#
# For a cluster of your own, change:
#   program               to where the program is on each node, or fetch it with an artifact block
#   directory             to where its socket may be; the controller's exporter.socket or exporter.nodes says
#                         the same
#   args                  for a controller on another node: give the exporter a certificate, and uncomment the
#                         four lines; exporter.nodes of the controller is https://{node}:9836 then. Or uncomment
#                         network and service too: exporter.discovery = nomad finds them then
#   resources             hardly ever: it stays small whatever runs beside it

variable "program" {
  type        = string
  default     = "/usr/bin/pitchpipe-exporter"
  description = "path of the exporter on each node"
}

variable "directory" {
  type        = string
  default     = "/run/pitchpipe"
  description = "folder of the exporter's socket"
}

variable "state" {
  type        = string
  default     = "/var/lib/pitchpipe-exporter"
  description = "folder in which joules survive a restart"
}

job "pitchpipe-exporter" {
  type = "system"

  # Batch jobs come and go; what measures them is there first.
  priority = 90

  group "exporter" {
    restart {
      attempts = 10
      interval = "10m"
      delay    = "5s"
      mode     = "delay"
    }

    # network {
    #   port "api" { static = 9836 }
    # }

    task "exporter" {
      driver = "raw_exec"

      config {
        command = var.program
        args = [
          "--socket=${var.directory}/exporter.sock",
          "--state.file=${var.state}/state.json",
          # "--api.listen-address=:9836",
          # "--api.cert=/etc/pitchpipe/node.crt", "--api.key=/etc/pitchpipe/node.key",
          # "--api.client-ca=/etc/pitchpipe/ca.crt",
          # "--api.clients=pitchpipe-controller",
        ]
      }

      # service {
      #   name     = "pitchpipe-exporter"
      #   provider = "nomad"
      #   port     = "api"
      # }

      kill_timeout = "10s"

      resources {
        cpu    = 100
        memory = 128
      }
    }
  }
}
