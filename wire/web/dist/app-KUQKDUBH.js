import{eb as r}from"./chunk-LXF7FFQF.js";r();
