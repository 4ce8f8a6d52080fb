import{ia as r}from"./chunk-23JIVSNS.js";r();
