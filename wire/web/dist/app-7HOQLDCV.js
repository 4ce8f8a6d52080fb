import{pb as r}from"./chunk-ZZDLDGSA.js";r();
