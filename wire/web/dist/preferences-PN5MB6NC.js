import{a as o}from"./chunk-TACJ2ATD.js";import"./chunk-M7KWKQGM.js";import"./chunk-UY5OSXFY.js";export{o as Preferences};
