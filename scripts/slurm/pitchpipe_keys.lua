-- This file is generated from the table of keys that `pitchpipe validate` judges
-- by. Do not edit it.

return {
  keys = {
    {
      block = "", name = "mode", type = "word",
      words = { "observe", "recommend", "apply" },
      allowed = "observe, recommend or apply",
      line = "mode=apply",
    },
    {
      block = "", name = "objective", type = "word",
      words = { "energy", "time", "edp", "blend", "cost" },
      allowed = "energy, time, edp, blend or cost",
      line = "objective=energy",
    },
    {
      block = "", name = "weight", type = "number",
      low = 0, high = 1,
      allowed = "a number from 0 to 1, only with objective blend",
      line = "weight=0.7",
    },
    {
      block = "", name = "max_slowdown", type = "number",
      words = { "none" },
      low = 1, high = 1.7976931348623157e+308,
      allowed = "a number of at least 1, or none",
      line = "max_slowdown=1.1",
    },
    {
      block = "knob", name = "env", type = "variable",
      allowed = "the name of an environment variable that no shell, linker, language runtime or scheduler acts on, such as PATH, LD_* or SLURM_*",
      line = "env=BATCH_SIZE",
    },
    {
      block = "knob", name = "arg", type = "flag",
      allowed = "a command-line flag such as --learning-rate, not in a batch script",
      line = "arg=--learning-rate",
    },
    {
      block = "knob", name = "live", type = "boolean",
      allowed = "true or false",
      line = "live=true",
    },
    {
      block = "knob", name = "follows", type = "knob name",
      allowed = "the name of another knob that follows none, without quality, values, min, max, scale and default",
      line = "follows=cores",
    },
    {
      block = "knob", name = "values", type = "values",
      allowed = "a list of different values, without min and max",
      line = "values=32,64,128",
    },
    {
      block = "knob", name = "min", type = "value",
      allowed = "a number below max, without values",
      line = "min=0.001",
    },
    {
      block = "knob", name = "max", type = "value",
      allowed = "a number above min, without values",
      line = "max=0.1",
    },
    {
      block = "knob", name = "scale", type = "word",
      words = { "linear", "log", "pow2" },
      allowed = "linear, log or pow2, only with min and max; log and pow2 need min above 0",
      line = "scale=log",
    },
    {
      block = "knob", name = "default", type = "value",
      allowed = "one value, not for cores and memory",
      line = "default=32",
    },
    {
      block = "knob", name = "quality", type = "word",
      words = { "same" },
      allowed = "same",
      line = "quality=same",
    },
    {
      block = "progress", name = "pattern", type = "pattern",
      allowed = "a regular expression with the named group epoch, and if wanted total, loss and quality",
      line = "pattern='epoch (?P<epoch>\\d+)/(?P<total>\\d+)'",
    },
    {
      block = "progress", name = "file", type = "text",
      allowed = "a path, only with pattern",
      line = "file=train.log",
    },
    {
      block = "progress", name = "report", type = "boolean",
      allowed = "true or false, instead of pattern",
      line = "report=true",
    },
    {
      block = "progress", name = "total", type = "integer",
      low = 1, high = 1e+09,
      allowed = "a whole number of at least 1",
      line = "total=50",
    },
    {
      block = "quality", name = "direction", type = "word",
      words = { "max", "min" },
      allowed = "max or min",
      line = "direction=max",
    },
    {
      block = "quality", name = "max_loss", type = "number",
      low = 0, high = 1,
      allowed = "a number from 0 to 1",
      line = "max_loss=0.01",
    },
    {
      block = "quality", name = "target", type = "number",
      low = -1.7976931348623157e+308, high = 1.7976931348623157e+308,
      allowed = "a number",
      line = "target=0.97",
    },
    {
      block = "profile", name = "warmup_epochs", type = "integer",
      low = 0, high = 1e+09,
      allowed = "a whole number of at least 0",
      line = "warmup_epochs=1",
    },
    {
      block = "profile", name = "epochs", type = "integer",
      low = 1, high = 1e+09,
      allowed = "a whole number of at least 1",
      line = "epochs=2",
    },
    {
      block = "checkpoint", name = "signal", type = "signal",
      allowed = "the name of a signal that a job can catch, such as SIGUSR1 or USR1",
      line = "signal=SIGUSR1",
    },
    {
      block = "checkpoint", name = "grace", type = "time",
      allowed = "a time of more than 0s and at most 1h",
      line = "grace=60s",
    },
    {
      block = "checkpoint", name = "exit", type = "integer",
      low = 1, high = 255,
      allowed = "a whole number from 1 to 255",
      line = "exit=85",
    },
    {
      block = "checkpoint", name = "done", type = "pattern",
      allowed = "a regular expression",
      line = "done='checkpoint written'",
    },
    {
      block = "budget", name = "energy", type = "energy",
      allowed = "an amount of energy above 0 such as 2MJ or 0.5kWh",
      line = "energy=2MJ",
    },
    {
      block = "budget", name = "time", type = "time",
      allowed = "a time above 0 such as 90m or 4h",
      line = "time=4h",
    },
    {
      block = "budget", name = "restarts", type = "integer",
      low = 0, high = 1e+09,
      allowed = "a whole number of at least 0",
      line = "restarts=2",
    },
    {
      block = "budget", name = "probes", type = "integer",
      low = 0, high = 1e+09,
      allowed = "a whole number of at least 0",
      line = "probes=4",
    },
    {
      block = "budget", name = "returns", type = "integer",
      low = 0, high = 1e+09,
      allowed = "a whole number of at least 0",
      line = "returns=6",
    },
  },
  blocks = { "", "knob", "progress", "quality", "profile", "checkpoint", "budget" },
  defaults = { objective = "time" },
  blend = "blend",
  linear = "linear",
  system = { "cores", "memory", "threads", "gpus", "power_limit" },
  counts = { "cores", "threads", "gpus" },
  signals = { "SIGUSR1", "SIGUSR2", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGCONT", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGWINCH", "SIGIO", "SIGPWR", "SIGXCPU", "SIGXFSZ" },
  denied = {
    names = { "PATH", "HOME", "SHELL", "TMPDIR", "CDPATH", "IFS", "ENV", "SHELLOPTS", "BASHOPTS", "BASH_*", "PS4", "PROMPT_COMMAND", "LD_*", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES", "GETCONF_DIR", "PYTHON*", "PERL*", "RUBY*", "LUA_*", "NODE_*", "R_PROFILE*", "R_ENVIRON*", "R_LIBS*", "CLASSPATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "GIT_*", "SSH_*", "EDITOR", "VISUAL", "PAGER", "OMPI_MCA_*", "PMIX_MCA_*", "PRTE_MCA_*", "SLURM_*", "SBATCH_*", "SRUN_*", "SPANK_*", "NOMAD_*", "PITCHPIPE_*" },
    bytes = "[^A-Za-z0-9_.,:+%%/@{}=%-]", -- of values
  },
  rules = {
    ["cores"] = "whole numbers of at least 1",
    ["memory"] = "amounts of memory above 0 such as 256MiB or 4GiB",
    ["threads"] = "whole numbers of at least 1",
    ["gpus"] = "whole numbers of at least 0",
    ["power_limit"] = "watts above 0",
    [""] = "numbers, or words of letters, digits and _.,:+%/@{}=-",
  },
  units = {
    bytes = {
      { name = "KiB", factor = 1024 },
      { name = "MiB", factor = 1.048576e+06 },
      { name = "GiB", factor = 1.073741824e+09 },
      { name = "TiB", factor = 1.099511627776e+12 },
      { name = "kB", factor = 1000 },
      { name = "KB", factor = 1000 },
      { name = "MB", factor = 1e+06 },
      { name = "GB", factor = 1e+09 },
      { name = "TB", factor = 1e+12 },
      { name = "K", factor = 1024 },
      { name = "M", factor = 1.048576e+06 },
      { name = "G", factor = 1.073741824e+09 },
      { name = "T", factor = 1.099511627776e+12 },
      { name = "B", factor = 1 },
      { name = "", factor = 1 },
    },
    energy = {
      { name = "MWh", factor = 3.6e+09 },
      { name = "kWh", factor = 3.6e+06 },
      { name = "Wh", factor = 3600 },
      { name = "GJ", factor = 1e+09 },
      { name = "MJ", factor = 1e+06 },
      { name = "kJ", factor = 1000 },
      { name = "KJ", factor = 1000 },
      { name = "J", factor = 1 },
      { name = "", factor = 1 },
    },
  },
  limits = {
    name = 64, -- letters of the name of a knob
    count = 1048576, -- cores, threads or GPUs
    bytes = 4611686018427387904, -- of memory
    grace = 3600000000000, -- nanoseconds
  },
}
