import{a as o,b as r}from"./chunk-VCWXUNMF.js";import"./chunk-R45LNYQC.js";import"./chunk-ZQYSGTBK.js";import"./chunk-7AMPP6T2.js";export{r as NotificationFields,o as Notifications};
