# The controller of a cluster as a service of Nomad, with the identity of its own task and no stored token.
#
# First let this job do what the policy says, and nothing more; then start it:
#
#   nomad acl policy apply -namespace default -job pitchpipe-controller pitchpipe scripts/nomad/policy.hcl
#   nomad job run jobspecs/nomad/controller.nomad.hcl
#
# (scripts/nomad/policy-1.hcl for Nomad 1.x.) scripts/nomad/README.md says what each line of the policy is for,
# and what register-job means where raw_exec is on. Without ACLs no policy is needed.
#
# For a cluster of your own, change:
#   program               to where the program is on the node, or fetch it with an artifact block
#   state                 to a folder that the controller finds again, such as a host volume; for a pair of
#                         controllers set count = 2 and uncomment the store: one leads, the other stands by
#   namespaces            to those whose jobs are tuned, with commas between them; apply the policy to each
#   nodes                 to where the exporters are: empty for one on the same node,
#                         https://{node}:9836 for one on each
#   site                  to the site's policy file; without one nothing is changed, only recommended
#   driver                to exec where that is on: raw_exec runs it as the user of Nomad's client, often root, and
#                         the controller needs no rights on its node

variable "program" {
  type        = string
  default     = "/usr/bin/pitchpipe"
  description = "path of pitchpipe on the node"
}

variable "state" {
  type        = string
  default     = "/var/lib/pitchpipe"
  description = "folder of what the controller knows"
}

variable "directory" {
  type        = string
  default     = "/run/pitchpipe"
  description = "folder of the sockets of the controller and of the exporter"
}

variable "namespaces" {
  type        = string
  default     = "default"
  description = "namespaces whose jobs are tuned"
}

variable "nodes" {
  type        = string
  default     = ""
  description = "where the exporter of each node is"
}

variable "site" {
  type        = string
  default     = ""
  description = "the site's policy file"
}

job "pitchpipe-controller" {
  type     = "service"
  priority = 80

  group "controller" {
    count = 1

    restart {
      attempts = 10
      interval = "10m"
      delay    = "5s"
      mode     = "delay"
    }

    task "controller" {
      driver = "raw_exec"

      # A token of the task's own in its secrets directory, which ends with the task.
      identity {
        file = true
      }

      config {
        command = var.program
        args = [
          "controller",
          "--driver=nomad",
          # The agent's API inside the task: no address, no certificate.
          "--nomad.address=unix://${NOMAD_SECRETS_DIR}/api.sock",
          "--nomad.namespaces=${var.namespaces}",
          "--state=${var.state}",
          "--socket=${var.directory}/controller.sock",
          "--exporter.socket=${var.directory}/exporter.sock",
          "--exporter.nodes=${var.nodes}",
          "--site=${var.site}",
          # "--store.kind=nomad", "--store.prefix=pitchpipe",
        ]
      }

      # What it is about to do is written down first: it may be killed at any moment. This is for its manners.
      kill_signal  = "SIGTERM"
      kill_timeout = "20s"

      resources {
        cpu    = 200
        memory = 256
      }
    }
  }
}
