import{a as o,b as r}from"./chunk-DYX2ZKNE.js";import"./chunk-HDDYEEFF.js";import"./chunk-AUGD363A.js";import"./chunk-HPKC5SJS.js";export{r as NotificationFields,o as Notifications};
