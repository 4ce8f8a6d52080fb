import{eb as r}from"./chunk-45JOR5LA.js";r();
