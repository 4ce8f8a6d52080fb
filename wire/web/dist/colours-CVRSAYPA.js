import{a as o,b as r}from"./chunk-WQTJ42KP.js";import"./chunk-JGPML2EU.js";export{r as ColourCard,o as ColourChoice};
