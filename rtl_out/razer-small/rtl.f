../razer-small.v
