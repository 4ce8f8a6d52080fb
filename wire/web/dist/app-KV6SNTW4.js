import{_a as r}from"./chunk-BTS5HUHD.js";r();
