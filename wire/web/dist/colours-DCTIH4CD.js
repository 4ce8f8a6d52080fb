import{a as o,b as r}from"./chunk-WZL4V4FU.js";import"./chunk-BN2J5NV2.js";export{r as ColourCard,o as ColourChoice};
