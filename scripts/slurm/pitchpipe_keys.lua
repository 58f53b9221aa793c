-- This file is generated from the keys of `pitchpipe validate`. Do not edit it.

return {
  blocks = {
    [""] = {
      want = "mode, objective, weight or max_slowdown",
      keys = {
        mode = { want = "observe, recommend or apply", words = { ["observe"] = true, ["recommend"] = true, ["apply"] = true } },
        objective = { want = "energy, time, edp, blend or cost", words = { ["energy"] = true, ["time"] = true, ["edp"] = true, ["blend"] = true, ["cost"] = true } },
        weight = {},
        max_slowdown = {},
      },
    },
    ["knob"] = {
      want = "env, arg, live, follows, values, min, max, scale, default, quality or when",
      keys = {
        env = {},
        arg = {},
        live = { want = "true or false", words = { ["true"] = true, ["false"] = true } },
        follows = {},
        values = {},
        min = {},
        max = {},
        scale = { want = "linear, log or pow2, only with min and max; log and pow2 need min above 0", words = { ["linear"] = true, ["log"] = true, ["pow2"] = true } },
        default = {},
        quality = { want = "same", words = { ["same"] = true } },
        when = {},
      },
    },
    ["progress"] = {
      want = "pattern, file, report or total",
      keys = {
        pattern = {},
        file = {},
        report = { want = "true or false, instead of pattern", words = { ["true"] = true, ["false"] = true } },
        total = {},
      },
    },
    ["quality"] = {
      want = "direction, max_loss, target or measures",
      keys = {
        direction = { want = "max or min", words = { ["max"] = true, ["min"] = true } },
        max_loss = {},
        target = {},
        measures = {},
      },
    },
    ["profile"] = {
      want = "warmup_epochs or epochs",
      keys = {
        warmup_epochs = {},
        epochs = {},
      },
    },
    ["checkpoint"] = {
      want = "signal, grace, exit or done",
      keys = {
        signal = {},
        grace = {},
        exit = {},
        done = {},
      },
    },
    ["budget"] = {
      want = "energy, time, restarts, probes or returns",
      keys = {
        energy = {},
        time = {},
        restarts = {},
        probes = {},
        returns = {},
      },
    },
    ["search"] = {
      want = "method, trials, parallel, epochs, min_epochs, eta, seed, system, failures, energy, time or core_hours",
      keys = {
        method = { want = "asha, hyperband, gp, asha+gp, random or grid", words = { ["asha"] = true, ["hyperband"] = true, ["gp"] = true, ["asha+gp"] = true, ["random"] = true, ["grid"] = true } },
        trials = {},
        parallel = {},
        epochs = {},
        min_epochs = {},
        eta = {},
        seed = {},
        system = { want = "pipelined, searched or fixed", words = { ["pipelined"] = true, ["searched"] = true, ["fixed"] = true } },
        failures = {},
        energy = {},
        time = {},
        core_hours = {},
      },
    },
    ["action"] = {
      want = "max or explore",
      keys = {
        max = {},
        explore = {},
      },
    },
  },
  want = "knob, progress, quality, profile, checkpoint, budget, search or action",
  amounts = { memory = true, power_limit = true },
  other_bytes = "[^A-Za-z0-9_.,:+%%/@{}=%-]",
}
