job "train" {
  type = "batch"
  periodic {
    cron             = "*/15 * * * *"
    prohibit_overlap = true
    time_zone        = "UTC"
  }
  group "g" {
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
      }
      resources {
        memory = 64
      }
    }
  }
}
