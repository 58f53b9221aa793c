# What a controller of Pitchpipe may do, for Nomad 1.x, which knows no plan-job, register-job and deregister-job. README.md says why each line is there; the
# test of this folder shows that nothing is missing and that nothing can be left out.
#
#   nomad acl policy apply -namespace default -job pitchpipe-controller pitchpipe policy-1.hcl # for its job
#   nomad acl policy apply pitchpipe policy-1.hcl                                              # for a token
#
# For another namespace, or several, repeat the block. On a cluster with raw_exec read in README.md first what
# submit-job means.

namespace "default" {
  capabilities = [
    "list-jobs",
    "read-job",
    "parse-job",
    "submit-job",
    "alloc-lifecycle",
    "read-fs",
  ]

  # The state that several controllers share (store.kind = nomad). One that is alone needs none of it.
  variables {
    path "pitchpipe/*" {
      capabilities = ["read", "write", "destroy"]
    }

    # The variables of tasks, nomad/jobs/JOB/GROUP/TASK, for jobs whose author lets their environment be changed
    # by a template. Not those of a whole job or group, where people keep what is secret.
    path "nomad/jobs/*/*/*" {
      capabilities = ["read", "write", "destroy"]
    }
  }
}

# How many cores and how much memory the nodes have, so that nothing is asked for that none has.
node {
  policy = "read"
}
