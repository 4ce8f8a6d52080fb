import{bb as r}from"./chunk-JM4NAU6W.js";r();
