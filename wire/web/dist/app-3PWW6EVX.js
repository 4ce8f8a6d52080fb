import{bb as r}from"./chunk-NIPK5IKA.js";r();
